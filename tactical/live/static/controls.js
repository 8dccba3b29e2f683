// What people press: playing a recording, steering a run, and the keys for both.

import { element } from "./model.js";

const SEEK_STEP_S = 5;
const find = (id) => document.getElementById(id);

export class Controls {
  constructor(model, send, fit) {
    Object.assign(this, { model, send, fit, seeking: false });
    const slider = find("slider");
    find("play").onclick = () => this.toggle();
    find("speed").onchange = (e) => send({ do: "speed", speed: Number(e.target.value) });
    slider.oninput = () => {
      this.seeking = true;
      clearTimeout(this.seekingEnds);
      this.seekingEnds = setTimeout(() => (this.seeking = false), 400);
      this.seek(Number(slider.value));
    };
    find("motion").onclick = () => this.toggle();
    find("motionspeed").onchange = () => this.moving && this.motion(true);
    for (const radio of document.getElementsByName("policy")) {
      radio.onchange = () => send({ do: "policy", policy: radio.value });
    }
    find("setdemand").onclick = () => send({ do: "demand", user: find("demanduser").value,
      rate_bps: Number(find("demand").value) * 1e6 });
    for (const form of document.forms) form.onsubmit = () => false;
    document.addEventListener("keydown", (event) => this.key(event));
  }

  reset() {
    const { mode, setup } = this.model;
    find("replay").hidden = mode !== "replay";
    find("steer").hidden = mode !== "live" || !this.model.section("run").steerable;
    find("demanduser").replaceChildren(
      ...setup.users.map((user) => element("option", { textContent: user.name })));
    this.cuts = {};
    find("cuts").replaceChildren(...this.model.relays.map((relay) => {
      const button = element("button", { type: "button" });
      button.onclick = () => this.send({ do: "link", relay,
        up: !this.model.section("links")[relay].up });
      return (this.cuts[relay] = button);
    }));
  }

  get playing() {
    return this.model.section("playback").playing ?? false;
  }

  get moving() {
    return (this.model.section("run").mobility_speed ?? 1) > 0;
  }

  toggle() {
    if (this.model.mode === "replay") this.send({ do: "play", playing: !this.playing });
    else this.motion(!this.moving);
  }

  motion(on) {
    this.send({ do: "mobility", speed: on ? Number(find("motionspeed").value) : 0 });
  }

  seek(t_s) {
    this.send({ do: "seek", t_s });
  }

  key(event) {
    const busy = event.target.closest("input, select, button, textarea");
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const step = { ArrowLeft: -SEEK_STEP_S, ArrowRight: SEEK_STEP_S }[event.key];
    if (event.key === " " && !busy) this.toggle();
    else if (event.key === "f" && event.target.type !== "number") this.fit();
    else if (event.key === "Home" && !busy && this.model.mode === "replay") this.seek(0);
    else if (step && !busy && !event.target.closest("#map") && this.model.mode === "replay") {
      this.seek((this.model.time ?? 0) + step);
    } else return;
    event.preventDefault();
  }

  draw() {
    const { model } = this;
    const run = model.section("run");
    const over = run.phase === "done" || run.phase === "failed";
    const allowed = model.steering && (model.mode === "replay" || (run.steerable && !over));
    for (const form of [find("replay"), find("steer")]) {
      for (const control of form.elements) control.disabled = !allowed;
    }
    if (model.mode === "replay") {
      const playback = model.section("playback");
      find("play").textContent = this.playing ? "Pause" : "Play";
      const slider = find("slider");
      slider.max = playback.end_s ?? 1;
      if (!this.seeking) slider.value = model.time ?? 0;
      slider.setAttribute("aria-valuetext", `${(model.time ?? 0).toFixed(1)} seconds`);
      find("position").textContent =
        `${(model.time ?? 0).toFixed(1)} of ${(playback.end_s ?? 0).toFixed(1)} s`;
      if (document.activeElement !== find("speed")) find("speed").value = playback.speed ?? 1;
    } else {
      find("motion").textContent = this.moving ? "Pause" : "Move";
      for (const radio of document.getElementsByName("policy")) radio.checked = radio.value === run.policy;
      for (const [relay, button] of Object.entries(this.cuts)) {
        const up = model.section("links")[relay]?.up ?? true;
        button.textContent = up ? `Cut ${relay}` : `Heal ${relay}`;
        button.classList.toggle("cut", !up);
      }
    }
    find("hint").textContent = this.hint(allowed, over, run);
  }

  hint(allowed, over, run) {
    if (!this.model.steering) return "This page only watches; the address with the token steers.";
    if (this.model.mode === "replay") return "Keys: space, ← →, f fits the map";
    if (over) return "The run is over.";
    if (!run.steerable) return "This run is watched only.";
    return "Drag ships and UAVs, or focus one and use the arrow keys. Keys: space, f fits the map";
  }
}
