// Ties the page together: a message comes, the parts that it concerns are drawn.

import { connect } from "./connection.js";
import { Controls } from "./controls.js";
import { NetworkMap } from "./map.js";
import { Model, element, megabits, pathColour } from "./model.js";
import { Rates } from "./rates.js";
import { Steering } from "./steering.js";
import { Stories } from "./stories.js";

const find = (id) => document.getElementById(id);
const model = new Model();
let due = false;
let ticks = 0;

const send = connect({
  onMessage(message) {
    if (message.type === "refused") return refuse(message.reason);
    ticks++;
    model.take(message);
    if (message.full) begin();
    if (message.sections.positions) map.told(message.sections.positions);
    if (message.sections.stories) stories.show(message.sections.stories);
    if (!due) {
      due = true;
      requestAnimationFrame(draw);
    }
  },
  onStatus(connected, reason) {
    find("connection").classList.toggle("lost", !connected);
    find("connection").textContent = connected ? "connected" : reason || "connection lost, trying again…";
    document.body.dataset.connected = connected;
  },
});
const map = new NetworkMap(find("map"), model, send);
const rates = new Rates(find("plots"), find("key"), find("window"), model);
const stories = new Stories(find("stories"), model);
const controls = new Controls(model, send, () => map.fit());
const steering = new Steering(model, send);
find("handovers").onchange = (e) => find("happens").classList.toggle("only", e.target.checked);

let shown = null;

function begin() {
  const { setup } = model;
  stories.reset();
  // The same run at another moment keeps the map and the plots that it has.
  const same = JSON.stringify([model.mode, setup]);
  if (same !== shown) {
    shown = same;
    map.reset();
    rates.reset();
    controls.reset();
    steering.reset();
    rows = {};
    find("subflows").replaceChildren();
  } else {
    map.restart();
    rates.drawn = 0;
  }
  const seed = setup.seed === null ? "" : `, seed ${setup.seed}`;
  find("title").textContent = `${setup.scenario}, ${setup.protocol}${seed}`;
  document.title = `${setup.scenario} ${setup.protocol} – tactical`;
  find("machine").title = setup.machine;
  paces = [];
}

let paces = [];

// How fast run time passes, from the last ten seconds.
function pace() {
  const now = performance.now() / 1000;
  if (model.time !== null && paces.at(-1)?.[1] !== model.time) paces.push([now, model.time]);
  while (paces.length > 2 && now - paces[0][0] > 10) paces.shift();
  const [first, last] = [paces[0], paces.at(-1)];
  return last && now - first[0] > 3 ? (last[1] - first[1]) / (now - first[0]) : null;
}

function drawMachine() {
  const { mode, setup } = model;
  const emulated = mode !== "replay" && setup.machine.includes("software");
  let text = setup.machine;
  if (emulated && setup.time === "real") {
    text = "The processor is emulated: this network is slower than a real one";
  } else if (emulated) {
    const speed = pace();
    const known = speed === null ? "" : `: ${speed.toFixed(2)} s in each second`;
    text = `Virtual time, as fast as an emulated processor goes${known}`;
  }
  if (find("machine").textContent !== text) find("machine").textContent = text;
  find("machine").classList.toggle("slow", emulated);
}

function draw() {
  due = false;
  const run = model.section("run");
  find("time").textContent = model.time === null ? "–" : `${model.time.toFixed(1)} s`;
  find("phase").textContent = run.phase ?? "–";
  find("phase").title = run.reason ?? "";
  find("phase").classList.toggle("failed", run.phase === "failed");
  find("policy").textContent =
    run.policy === "shortest" ? `${model.setup.protocol === "sptcp" ? "sptcp" : "mptcp"}, no allocation` : run.policy ?? "–";
  find("viewers").textContent = model.viewers;
  find("viewers").title = `${model.coalesced} updates were put together for slow viewers`;
  map.draw();
  rates.draw();
  controls.draw();
  steering.draw();
  drawSubflows();
  drawMachine();
  document.body.dataset.ticks = ticks;
}

let rows = {};

function drawSubflows() {
  for (const [key, subflow] of Object.entries(model.section("subflows"))) {
    let row = rows[key];
    if (!row) {
      const swatch = element("span", { className: "swatch" });
      swatch.style.background = pathColour(model, subflow.via);
      row = rows[key] = element("tr", {},
        element("td", { textContent: subflow.user }),
        element("td", {}, swatch, subflow.via),
        ...Array.from({ length: 5 }, () => element("td")));
      row.dataset.subflow = key;
      find("subflows").append(row);
    }
    row.classList.toggle("away", !subflow.attached);
    const cells = [
      megabits(subflow.measured_bps), megabits(subflow.allocated_bps),
      megabits(subflow.queue_bps),
      subflow.max_bps ? `${megabits(subflow.min_bps)} to ${megabits(subflow.max_bps)}` : "–",
      subflow.waiting_packets ?? "–",
    ];
    cells.forEach((text, i) => {
      const cell = row.children[i + 2];
      if (cell.textContent !== String(text)) cell.textContent = text;
    });
  }
}

let refusal;

function refuse(reason) {
  find("refused").textContent = reason;
  clearTimeout(refusal);
  refusal = setTimeout(() => (find("refused").textContent = ""), 5000);
}
