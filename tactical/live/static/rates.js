// Streaming plots: for every user what is measured and what is allocated, and the links in use.

import { element, pathColour } from "./model.js";

const uPlot = window.uPlot;
const DRAW_EVERY_MS = 250;
const AXIS = { stroke: "#a3b4c6", grid: { stroke: "#1d2d40", width: 1 }, ticks: { show: false } };

export class Rates {
  constructor(container, key, window_, model) {
    Object.assign(this, { container, key, model, plots: [], drawn: 0 });
    this.choice = window_;
    window_.addEventListener("change", () => (this.drawn = 0));
    new ResizeObserver(() => this.resize()).observe(container);
  }

  reset() {
    for (const { plot } of this.plots) plot.destroy();
    this.container.replaceChildren();
    const { setup } = this.model;
    this.plots = setup.users.map((user) => this.make(user.name, [
      ...user.paths.flatMap((via) => [
        { source: `measured ${user.name} ${via}`, scale: 1e-6,
          stroke: pathColour(this.model, via), width: 2.2 },
        { source: `allocated ${user.name} ${via}`, scale: 1e-6, held: true,
          stroke: pathColour(this.model, via), width: 1.4, dash: [6, 4] },
      ]),
      { source: `goodput ${user.name}`, scale: 1e-6, stroke: "#ffffff", width: 1 },
    ]));
    if (this.model.mode !== "replay") {
      // While it goes on, only the sum of what arrives at the host is counted.
      const host = setup.nodes.find((node) => node.kind === "host").name;
      const arriving = { source: `goodput ${host}`, scale: 1e-6, stroke: "#ffffff", width: 1.5 };
      this.plots.push(this.make(`arriving at ${host}`, [arriving]));
    }
    this.plots.push(this.make("links in use, %", [
      ...this.model.relays.map((relay) => ({ source: `link ${relay}`, scale: 100,
        stroke: pathColour(this.model, relay), width: 2 })),
    ], [0, 100]));
    const entry = (colour, text, dashed) => {
      const line = element("i", { className: dashed ? "dashed" : "" });
      line.style.borderColor = colour;
      return element("span", {}, line, text);
    };
    this.key.replaceChildren(
      ...this.model.relays.map((relay) => entry(pathColour(this.model, relay), relay)),
      entry("#a3b4c6", "allocated", true), entry("#ffffff", this.model.mode === "live" ? "arriving" : "goodput"));
    this.drawn = 0;
  }

  make(title, series, range) {
    const holder = element("div");
    const box = element("div", { className: "plot" }, element("h3", { textContent: title }), holder);
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${title}: the figures are in the table of subflows`);
    this.container.append(box);
    const options = {
      width: 100, height: 100, legend: { show: false }, cursor: { show: false },
      padding: [6, 12, 0, 0],
      scales: { x: { time: false }, y: { range: range ? () => range
        : (_, low, high) => [0, Math.max(0.1, (high ?? 0) * 1.08)] } },
      axes: [{ ...AXIS, size: 24, values: (_, all) => all.map((v) => `${v} s`) },
        { ...AXIS, size: 44 }],
      series: [{}, ...series.map(({ stroke, width, dash, held }) => ({ stroke, width, dash,
        points: { show: false }, paths: held ? uPlot.paths.stepped({ align: 1 }) : undefined }))],
    };
    const plot = new uPlot(options, [[], ...series.map(() => [])], holder);
    return { plot, box, series };
  }

  resize() {
    for (const { plot, box } of this.plots) {
      plot.setSize({ width: box.clientWidth, height: box.clientHeight });
    }
    this.drawn = 0;
  }

  draw() {
    const now = performance.now();
    if (now - this.drawn < DRAW_EVERY_MS || !this.plots.length) return;
    if (this.drawn === 0) this.plots.forEach(({ plot, box }) =>
      plot.setSize({ width: box.clientWidth, height: box.clientHeight }));
    this.drawn = now;
    const span = Number(this.choice.value);
    const end = Math.max(this.model.time ?? 0, 1);
    const begin = Math.max(0, end - span);
    for (const { plot, series } of this.plots) {
      const tables = series.map(({ source, scale, held }) =>
        this.table(this.model.series[source] ?? [], begin, end, scale, held));
      plot.batch(() => {
        plot.setData(uPlot.join(tables), false);
        plot.setScale("x", { min: begin, max: Math.max(end, begin + Math.min(span, 10)) });
      });
    }
  }

  // The points of a series in the window, and the one before it; what is held is drawn to the end.
  table(points, begin, end, scale, held) {
    let first = points.length;
    while (first > 0 && points[first - 1][0] >= begin) first--;
    const shown = points.slice(Math.max(0, first - 1));
    const x = [];
    const y = [];
    for (const [t, value] of shown) {
      const scaled = value === null ? null : value * scale;
      // Two values at one moment are a step.
      if (x.length && x[x.length - 1] === t) y[y.length - 1] = scaled;
      else { x.push(t); y.push(scaled); }
    }
    if (held && x.length && x[x.length - 1] < end) {
      x.push(end);
      y.push(y[y.length - 1]);
    }
    return [x, y];
  }
}
