// Boxes that a reader ticks off: kept in the browser under the report's name, so that they are there the next time.

class Ticks {
  // `key` names what the boxes belong to: a project, not a page, so that a newer report of it has them too.
  constructor(key) {
    this.key = `ticks-${key}`;
    this.listeners = [];
    this.done = new Set(JSON.parse(recalled(this.key) || "[]"));
  }

  has(name) {
    return this.done.has(name);
  }

  set(name, isDone) {
    if (isDone) this.done.add(name);
    else this.done.delete(name);
    remember(this.key, JSON.stringify([...this.done]));
    for (const listener of this.listeners) listener(name, isDone);
  }

  // A box for one thing; `label` is a pair of English and Chinese that is read aloud.
  box(name, label) {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.className = "tick";
    box.dataset.tick = name;
    box.setAttribute("aria-label", inLanguage(label));
    this.adopt(box);
    return box;
  }

  // A box that is in the page already; what it ticks off is its parent's class `done`.
  adopt(box) {
    const name = box.dataset.tick;
    const show = () => {
      box.checked = this.has(name);
      const thing = box.closest("[data-ticked]") || box.parentNode;
      if (thing) thing.classList.toggle("done", box.checked);
    };
    box.addEventListener("change", () => this.set(name, box.checked));
    this.listeners.push((changed) => { if (changed === name) show(); });
    show();
    queueMicrotask(show); // it may be put in its place only now
  }
}

// <div data-ticks="KEY"> holds <input type="checkbox" data-tick="NAME">; [data-ticks-done] shows how many are ticked.
starts.push((root) => {
  for (const holder of ownParts(root, "[data-ticks]")) {
    const ticks = new Ticks(holder.dataset.ticks);
    const boxes = [...holder.querySelectorAll("[data-tick]")];
    const count = () => {
      const done = boxes.filter((box) => box.checked).length;
      for (const place of holder.querySelectorAll("[data-ticks-done]")) place.textContent = `${done} / ${boxes.length}`;
    };
    for (const box of boxes) {
      box.hidden = false;
      ticks.adopt(box);
    }
    ticks.listeners.push(count);
    count();
  }
});
