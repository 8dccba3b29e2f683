// The list of what has happened, by time, the newest at the end.

import { element } from "./model.js";

const KEPT = 200;

export class Stories {
  constructor(list, model) {
    Object.assign(this, { list, model });
    this.reset();
  }

  reset() {
    this.list.replaceChildren();
    this.items = new Map();
  }

  // Take in the stories that have changed.
  show(changed) {
    const { list } = this;
    const following = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    const numbers = Object.keys(changed).map(Number).sort((a, b) => a - b);
    for (const number of numbers) {
      const story = changed[number];
      const item = element("li", { className: `${story.kind}${this.mood(story)}` },
        element("time", { textContent: story.t_s === null ? "set-up" : `${story.t_s.toFixed(1)} s` }),
        element("span", { className: "what", textContent: story.text }),
        ...story.parts.map((part) =>
          element("span", { className: `part ${part.kind}`, textContent: part.text })));
      this.items.get(number)?.remove();
      item.when = story.t_s ?? -Infinity;
      item.number = number;
      list.insertBefore(item, this.after(item));
      this.items.set(number, item);
    }
    for (const [number, item] of this.items) {
      if (this.items.size <= KEPT) break;
      item.remove();
      this.items.delete(number);
    }
    if (following) list.scrollTop = list.scrollHeight;
  }

  // What comes after an item. Some things are told late, so that numbers are not in order of time.
  after(item) {
    let next = null;
    for (let each = this.list.lastElementChild; each; each = each.previousElementSibling) {
      if (each.when < item.when || (each.when === item.when && each.number < item.number)) break;
      next = each;
    }
    return next;
  }

  mood(story) {
    if (story.good === undefined) return "";
    return story.good ? " good" : " bad";
  }
}
