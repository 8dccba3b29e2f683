// What people press to steer a network: its movement, links, demands and policy.

import { element } from "./model.js";

const find = (id) => document.getElementById(id);

export class Steering {
  constructor(model, send) {
    Object.assign(this, { model, send, cuts: {} });
    find("steer").onsubmit = () => {
      const rate_bps = Number(find("demand").value) * 1e6;
      send({ do: "demand", user: find("user").value, rate_bps });
      return false;
    };
    find("move").onclick = () => this.toggle();
    find("pace").onchange = (e) => send({ do: "speed", speed: Number(e.target.value) });
    find("decides").onchange = (e) => send({ do: "policy", policy: e.target.value });
    find("user").onchange = () => this.showDemand();
    document.addEventListener("keydown", (event) => {
      const busy = event.target.closest("input, select, button, textarea");
      if (event.key !== " " || busy || !this.on || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.toggle();
    });
  }

  get on() {
    return this.model.mode === "steered";
  }

  reset() {
    find("steer").hidden = !this.on;
    for (const button of Object.values(this.cuts)) button.remove();
    this.cuts = Object.fromEntries(this.model.relays.map((relay) => {
      const button = element("button", { type: "button" });
      button.dataset.relay = relay;
      button.onclick = () => this.send({ do: "link", relay, up: !this.up(relay) });
      return [relay, button];
    }));
    find("cuts").append(...Object.values(this.cuts));
    const users = this.model.setup.users.map(({ name }) => element("option", { textContent: name }));
    find("user").replaceChildren(...users);
    this.showDemand();
  }

  up(relay) {
    return this.model.section("links")[relay]?.up ?? true;
  }

  toggle() {
    this.send({ do: "play", playing: !(this.model.section("movement").playing ?? true) });
  }

  showDemand() {
    const rate = this.model.section("demands")[find("user").value];
    find("demand").value = rate === undefined || rate === null ? "" : +(rate / 1e6).toFixed(3);
  }

  draw() {
    if (!this.on) return;
    const { model } = this;
    const run = model.section("run");
    const movement = model.section("movement");
    for (const control of find("steer").elements) {
      control.disabled = !model.steering || run.phase !== "running";
    }
    this.say(find("move"), movement.playing === false ? "Go on" : "Pause");
    for (const [select, value] of [["pace", movement.speed], ["decides", run.policy]]) {
      if (document.activeElement !== find(select) && value !== undefined) find(select).value = value;
    }
    for (const [relay, button] of Object.entries(this.cuts)) {
      const up = this.up(relay);
      this.say(button, `${up ? "Cut" : "Heal"} ${relay}`);
      button.setAttribute("aria-pressed", !up);
    }
  }

  say(button, text) {
    if (button.textContent !== text) button.textContent = text;
  }
}
