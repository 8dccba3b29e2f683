// What people press: playing a recording, and the keys for it.

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
    find("replay").onsubmit = () => false;
    document.addEventListener("keydown", (event) => this.key(event));
  }

  reset() {
    find("replay").hidden = !this.recorded;
  }

  get playing() {
    return this.model.section("playback").playing ?? false;
  }

  get recorded() {
    return this.model.mode === "replay";
  }

  toggle() {
    this.send({ do: "play", playing: !this.playing });
  }

  seek(t_s) {
    this.send({ do: "seek", t_s });
  }

  key(event) {
    const busy = event.target.closest("input, select, button, textarea");
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const step = { ArrowLeft: -SEEK_STEP_S, ArrowRight: SEEK_STEP_S }[event.key];
    if (event.key === "f") this.fit();
    else if (busy || !this.recorded) return;
    else if (event.key === " ") this.toggle();
    else if (event.key === "Home") this.seek(0);
    else if (step && !event.target.closest("#map")) this.seek((this.model.time ?? 0) + step);
    else return;
    event.preventDefault();
  }

  draw() {
    const { model } = this;
    find("hint").textContent = this.hint();
    if (!this.recorded) return;
    for (const control of find("replay").elements) control.disabled = !model.steering;
    const [time, end] = [model.time ?? 0, model.section("playback").end_s ?? 1];
    find("play").textContent = this.playing ? "Pause" : "Play";
    const slider = find("slider");
    slider.max = end;
    if (!this.seeking) slider.value = time;
    slider.setAttribute("aria-valuetext", `${time.toFixed(1)} seconds`);
    find("position").textContent = `${time.toFixed(1)} of ${end.toFixed(1)} s`;
    if (document.activeElement !== find("speed")) {
      find("speed").value = model.section("playback").speed ?? 1;
    }
  }

  hint() {
    const { mode, steering } = this.model;
    if (mode === "live") return "This run goes on and is watched only. Key: f fits the map";
    if (!steering) {
      return `This page only watches; the address with the token ${this.recorded ? "plays" : "steers"}.`;
    }
    if (!this.recorded) {
      return "Drag ships and UAVs, or focus one and use the arrow keys. Space stops all, f fits the map";
    }
    return "Keys: space, ← →, f fits the map";
  }
}
