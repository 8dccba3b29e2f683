// The map: nodes, ranges, tracks, links and subflows over a nautical grid, in metres.

import { megabits, pathColour, utilisationColour } from "./model.js";

const L = window.L;
const NAUTICAL_MILE_M = 1852;
const TRACK_SHOWN = 240;
const APART_PX = 46; // an icon with its name
const MOVED = ["station", "access point"];
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const KEY_STEP_PX = 24;
const KEY_WAIT_MS = 400;
const LONGEST_PENDING_MS = 6000;

const SHAPES = {
  station: '<path fill="#e8eef5" stroke="#0a121c" d="M3 14h18l-3 6H6zM7 13V9h7v4zm3-4V4h2v5z"/>',
  "access point":
    '<path fill="#ffa657" stroke="#0a121c" d="M2 10l7 1 3-3 3 3 7-1-6 4-1 6h-6l-1-6z"/>',
  satellite:
    '<path fill="#6cb6ff" stroke="#0a121c" d="M1 9h7v6H1zm15 0h7v6h-7zM9 8h6v8H9zm3 9l4 4H8z"/>',
  host: '<path fill="#c9d5e2" stroke="#0a121c" d="M5 21V8h5V3h4v5h5v13zm4-10v2h2v-2zm4 0v2h2v-2zm-4 4v2h2v-2zm4 0v2h2v-2z"/>',
};

// How far to move each point, in pixels, so that no two are nearer than APART_PX.
function apart(points) {
  const moved = points.map(({ x, y }) => [x, y]);
  for (let round = 0; round < 8; round++) {
    let crowded = false;
    for (let i = 0; i < moved.length; i++) {
      for (let j = i + 1; j < moved.length; j++) {
        let [dx, dy] = [moved[j][0] - moved[i][0], moved[j][1] - moved[i][1]];
        const distance = Math.hypot(dx, dy);
        if (distance >= APART_PX - 0.5) continue;
        crowded = true;
        if (distance < 1) [dx, dy] = [1, 0];
        const step = (APART_PX - distance) / 2 / Math.max(1, distance);
        moved[i] = [moved[i][0] - dx * step, moved[i][1] - dy * step];
        moved[j] = [moved[j][0] + dx * step, moved[j][1] + dy * step];
      }
    }
    if (!crowded) break;
  }
  return moved.map(([x, y], i) => [x - points[i].x, y - points[i].y]);
}

export class NetworkMap {
  constructor(container, model, send) {
    Object.assign(this, { model, send, moving: {} });
    this.map = L.map(container, {
      crs: L.CRS.Simple, attributionControl: false, minZoom: -9, maxZoom: 3, zoomSnap: 0.25,
      zoomControl: false, preferCanvas: true, zoomAnimation: false,
    });
    L.control.zoom({ position: "topright" }).addTo(this.map);
    this.map.setView([0, 0], -3);
    this.grid = L.layerGroup().addTo(this.map);
    this.lines = L.layerGroup().addTo(this.map);
    this.map.on("moveend zoomend resize", () => {
      this.drawGrid();
      this.spreadIcons();
    });
    // Until somebody looks elsewhere, everything stays in view.
    this.touched = false;
    this.map.on("dragstart", () => (this.touched = true));
    for (const event of ["wheel", "click"]) {
      container.addEventListener(event, () => (this.touched = true), { passive: true });
    }
    new ResizeObserver(() => {
      this.map.invalidateSize();
      if (this.fitted && !this.touched) this.fit();
    }).observe(container);
    this.reset();
  }

  reset() {
    this.touched = false;
    this.lines.clearLayers();
    for (const marker of Object.values(this.markers ?? {})) marker.remove();
    for (const moved of Object.values(this.moving)) clearTimeout(moved.due);
    this.moving = {};
    this.markers = {};
    this.shapes = {};
    this.fixed = {};
    this.fitted = false;
    this.placed = 0;
  }

  // The same run at another moment: nodes stay, and what was drawn of time begins anew.
  restart() {
    for (const [name, shape] of Object.entries(this.shapes)) {
      if (name.startsWith("track ")) { shape.setLatLngs([]); shape.last = null; }
    }
  }

  // Where a node is drawn: where somebody is just putting it, or where it is.
  place(name) {
    if (this.moving[name]) return this.moving[name].at;
    const position = this.model.section("positions")[name];
    return position ? [position[1], position[0]] : this.fixed[name];
  }

  // Satellites have no place on a map of the sea: they stand above it, and the host below.
  arrange() {
    const bounds = L.latLngBounds([]);
    for (const node of this.model.setup.nodes) {
      const position = this.model.section("positions")[node.name];
      if (!position) continue;
      const reach = node.range_m ? Math.min(node.range_m, 20000) : 0;
      bounds.extend([position[1] - reach, position[0] - reach]);
      bounds.extend([position[1] + reach, position[0] + reach]);
    }
    if (!bounds.isValid()) return;
    const height = Math.max(1000, bounds.getNorth() - bounds.getSouth());
    const width = Math.max(1000, bounds.getEast() - bounds.getWest());
    const spread = (kind, north, from, to) => {
      const nodes = this.model.setup.nodes.filter((node) => node.kind === kind);
      nodes.forEach((node, i) => {
        const share = from + ((to - from) * (i + 0.5)) / nodes.length;
        this.fixed[node.name] = [north, bounds.getWest() + width * share];
      });
    };
    // Not one above the other, so that no link hides another.
    spread("satellite", bounds.getNorth() + 0.08 * height, 0.1, 0.5);
    spread("host", bounds.getSouth() - 0.06 * height, 0.6, 1.2);
    this.bounds = bounds;
    this.fit();
    this.fitted = true;
  }

  fit() {
    this.touched = false;
    const all = L.latLngBounds(this.model.setup.nodes.map((n) => this.place(n.name)).filter(Boolean));
    if (this.bounds) all.extend(this.bounds);
    if (all.isValid()) this.map.fitBounds(all, { padding: [22, 22], animate: false });
  }

  draw() {
    // Where nodes are is told of one after the other.
    const placed = Object.keys(this.model.section("positions")).length;
    if (!this.fitted || (placed > this.placed && !this.touched)) this.arrange();
    this.placed = placed;
    if (!this.fitted) return;
    for (const node of this.model.setup.nodes) this.drawNode(node);
    this.spreadIcons();
    this.drawLinks();
  }

  drawNode(node) {
    const at = this.place(node.name);
    if (!at) return;
    let marker = this.markers[node.name];
    if (!marker) {
      marker = this.markers[node.name] = this.makeMarker(node, at);
      if (MOVED.includes(node.kind)) this.makeMovable(node, marker);
      if (node.range_m) {
        this.shape(`range ${node.name}`, () =>
          L.circle(at, { radius: node.range_m, color: pathColour(this.model, node.name),
            weight: 1.2, dashArray: "5 5", fillOpacity: 0.05, interactive: false }));
      }
    }
    if (!this.moving[node.name]?.held) marker.setLatLng(at);
    this.allow(marker);
    if (node.range_m) this.shapes[`range ${node.name}`].setLatLng(at).setRadius(this.ground(node));
    const track = this.model.series[`track ${node.name}`];
    if (track?.length > 1) {
      const shape = this.shape(`track ${node.name}`, () =>
        L.polyline([], { color: "#8fa3b8", weight: 1.5, opacity: 0.55, dashArray: "2 4",
          interactive: false }));
      if (shape.last !== track.at(-1)) {
        shape.last = track.at(-1);
        shape.setLatLngs(track.slice(-TRACK_SHOWN).map(([east, north]) => [north, east]));
      }
    }
  }

  // Nodes that are near each other are drawn side by side, each with a dot where it really is.
  spreadIcons() {
    const names = Object.keys(this.markers).filter((name) => this.place(name));
    const real = names.map((name) => this.map.latLngToContainerPoint(this.place(name)));
    const shifts = apart(real);
    names.forEach((name, i) => {
      const shown = this.markers[name].getElement();
      const [x, y] = shifts[i].map(Math.round);
      shown.style.setProperty("--right", `${x}px`);
      shown.style.setProperty("--down", `${y}px`);
      shown.classList.toggle("aside", x !== 0 || y !== 0);
    });
  }

  // A range is measured through space; on the sea it reaches less far from high up.
  ground(node) {
    const up = this.model.section("positions")[node.name]?.[2] ?? 0;
    return Math.sqrt(Math.max(0, node.range_m ** 2 - up ** 2));
  }

  makeMarker(node, at) {
    const svg = `<svg viewBox="0 0 24 24" aria-hidden="true">${SHAPES[node.kind]}</svg>`;
    const html = `<div class="inner">${svg}<span class="name"></span></div>`;
    const icon = L.divIcon({ className: `node ${node.kind.replace(" ", "-")}`, html, iconSize: null });
    const marker = L.marker(at, { icon, keyboard: true });
    marker.addTo(this.map);
    const shown = marker.getElement();
    shown.querySelector(".name").textContent = node.name;
    shown.setAttribute("aria-label", `${node.name}, ${node.kind}`);
    shown.setAttribute("data-node", node.name);
    return marker;
  }

  // Ships and what flies are put elsewhere with the mouse, or with the arrow keys once focused.
  makeMovable(node, marker) {
    const { name } = node;
    marker.on("dragstart", () => {
      this.touched = true;
      this.moving[name] = { held: true, at: this.place(name) };
    });
    marker.on("drag", () => {
      const { lat, lng } = marker.getLatLng();
      this.moving[name].at = [lat, lng];
      this.draw();
    });
    marker.on("dragend", () => this.put(name));
    marker.getElement().addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step || !this.steers || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      const [lat, lng] = this.place(name);
      const length = KEY_STEP_PX / this.map.getZoomScale(this.map.getZoom(), 0);
      clearTimeout(this.moving[name]?.due);
      this.moving[name] = { at: [lat + step[1] * length, lng + step[0] * length],
        due: setTimeout(() => this.put(name), KEY_WAIT_MS) };
      this.draw();
    });
  }

  // Command a place, and show the node there until it has been told of.
  put(name) {
    const moved = this.moving[name];
    moved.held = false;
    this.send({ do: "place", node: name, east_m: moved.at[1], north_m: moved.at[0] });
    moved.due = setTimeout(() => {
      if (this.moving[name] === moved) delete this.moving[name];
    }, LONGEST_PENDING_MS);
    moved.sent = true;
  }

  // Positions have come: what was commanded is known now.
  told(positions) {
    for (const [name, [east, north]] of Object.entries(positions)) {
      const moved = this.moving[name];
      if (!moved?.sent) continue;
      if (Math.hypot(moved.at[1] - east, moved.at[0] - north) < this.arrived()) {
        clearTimeout(moved.due);
        delete this.moving[name];
      }
    }
  }

  // Nodes go on while a command is on its way.
  arrived() {
    return 250 * Math.max(1, this.model.section("movement").speed ?? 1);
  }

  get steers() {
    return this.model.mode === "steered" && this.model.steering;
  }

  allow(marker) {
    if (!marker.dragging || marker.dragging.enabled() === this.steers) return;
    if (this.steers) marker.dragging.enable();
    else marker.dragging.disable();
    marker.getElement().classList.toggle("movable", this.steers);
  }

  shape(name, make) {
    return (this.shapes[name] ??= make().addTo(this.lines));
  }

  drawLinks() {
    const links = this.model.section("links");
    const widest = Math.max(1, ...Object.values(links).map((link) => link.rate_bps ?? 0));
    const host = this.model.setup.nodes.find((node) => node.kind === "host").name;
    for (const [relay, link] of Object.entries(links)) {
      const ends = [this.place(relay), this.place(host)];
      if (!ends[0] || !ends[1]) continue;
      const shape = this.shape(`link ${relay}`, () =>
        L.polyline(ends, { lineCap: "round" }).bindTooltip("", { sticky: true }));
      shape.setLatLngs(ends);
      shape.setStyle(link.up
        ? { color: utilisationColour(link.utilisation), opacity: 0.9, dashArray: null,
            weight: 2 + 9 * Math.sqrt((link.rate_bps ?? 0) / widest) }
        : { color: "#ff7b72", opacity: 0.9, dashArray: "3 9", weight: 3 });
      const share = ((link.utilisation ?? 0) * 100).toFixed(0);
      shape.setTooltipContent(link.up
        ? `${relay}: ${megabits(link.rate_bps)} of ${megabits(link.capacity_bps)} Mbit/s, ${share} %`
        : `${relay}: cut`);
    }
    const subflows = Object.entries(this.model.section("subflows"));
    const most = Math.max(1, ...subflows.map(([, each]) => each.measured_bps ?? 0));
    for (const [key, subflow] of subflows) {
      const ends = [this.place(subflow.user), this.place(subflow.via)];
      const shown = subflow.attached && ends[0] && ends[1];
      if (!shown) {
        this.shapes[`subflow ${key}`]?.setStyle({ opacity: 0 });
        continue;
      }
      const shape = this.shape(`subflow ${key}`, () =>
        L.polyline(ends, { color: pathColour(this.model, subflow.via) })
          .bindTooltip("", { sticky: true }));
      const carries = (subflow.measured_bps ?? 0) > 5e3;
      shape.setLatLngs(ends);
      shape.setStyle({ opacity: carries ? 0.85 : 0.35, dashArray: carries ? null : "1 6",
        weight: 1.5 + 5 * Math.sqrt((subflow.measured_bps ?? 0) / most) });
      shape.setTooltipContent(`${subflow.user} over ${subflow.via}: ` +
        `${megabits(subflow.measured_bps)} Mbit/s, allocated ${megabits(subflow.allocated_bps)}`);
    }
  }

  drawGrid() {
    this.grid.clearLayers();
    const bounds = this.map.getBounds();
    const metresPerPixel = 1 / this.map.getZoomScale(this.map.getZoom(), 0);
    const wanted = 110 * metresPerPixel;
    const steps = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200];
    const miles = steps.find((each) => each * NAUTICAL_MILE_M >= wanted) ?? 500;
    const step = miles * NAUTICAL_MILE_M;
    const [south, north] = [bounds.getSouth(), bounds.getNorth()];
    const [west, east] = [bounds.getWest(), bounds.getEast()];
    const line = (ends, zero) => L.polyline(ends, { color: zero ? "#35516f" : "#1d3047",
      weight: 1, interactive: false }).addTo(this.grid);
    const label = (at, text, offset) => L.marker(at, { interactive: false, keyboard: false,
      icon: L.divIcon({ className: "gridlabel", html: text, iconSize: null, iconAnchor: offset }),
    }).addTo(this.grid);
    const name = (n, letters) => n === 0 ? "0" : `${Math.abs(+(n * miles).toFixed(2))} nm ${letters[+(n < 0)]}`;
    for (let n = Math.ceil(west / step); n * step <= east; n++) {
      line([[south, n * step], [north, n * step]], n === 0);
      label([north, n * step], name(n, "EW"), [-3, -2]);
    }
    for (let n = Math.ceil(south / step); n * step <= north; n++) {
      line([[n * step, west], [n * step, east]], n === 0);
      const below = (north - n * step) / metresPerPixel;
      if (below > 32) label([n * step, west], name(n, "NS"), [-4, 14]);
    }
    this.lines.eachLayer((layer) => layer.bringToFront?.());
  }
}
