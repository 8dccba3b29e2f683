// What the server has told: sections of values and series of points, as in tactical/live/store.py.

const POINTS_KEPT = 1200;

export class Model {
  constructor() {
    this.mode = null;
    this.setup = null;
    this.clear();
  }

  clear() {
    this.sections = {};
    this.series = {};
  }

  // Take in a message; it names the sections that changed.
  take(message) {
    if (message.full) {
      this.clear();
      this.mode = message.mode;
      this.setup = message.setup;
    }
    this.steering = message.steering;
    this.viewers = message.viewers;
    this.coalesced = message.coalesced;
    for (const [name, values] of Object.entries(message.sections)) {
      Object.assign((this.sections[name] ??= {}), values);
    }
    for (const [name, points] of Object.entries(message.series)) {
      const known = (this.series[name] ??= []);
      for (const point of points) known.push(point);
      if (known.length > POINTS_KEPT) known.splice(0, known.length - POINTS_KEPT);
    }
  }

  section(name) {
    return this.sections[name] ?? {};
  }

  get time() {
    return this.section("run").t_s ?? null;
  }

  get relays() {
    return this.setup.links.map((link) => link.relay);
  }
}

const PATH_COLOURS = ["#6cb6ff", "#ffa657", "#7ee787", "#d2a8ff", "#ff9bce", "#79e0e0"];

export function pathColour(model, relay) {
  return PATH_COLOURS[Math.max(0, model.relays.indexOf(relay)) % PATH_COLOURS.length];
}

export function megabits(rate) {
  if (rate === null || rate === undefined) return "–";
  const value = rate / 1e6;
  return value.toFixed(value < 10 ? 2 : 1);
}

// A colour from green (idle) to red (full).
export function utilisationColour(share) {
  const hue = 140 * (1 - Math.min(1, Math.max(0, share ?? 0)));
  return `hsl(${hue} 65% 52%)`;
}

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
