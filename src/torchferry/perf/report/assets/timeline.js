// The timeline: bars on a canvas, with zoom and pan by wheel, drag, keys and buttons.

const LANE = 0, NAME = 1, START = 2, LENGTH = 3, KIND = 4, DETAIL = 5;
const ROW = 16, GAP = 8, TITLE = 18, AXIS = 22, LEAST_VIEW = 0.05; // pixels; microseconds
const DEEPEST = 24; // rows of a lane

class Timeline {
  constructor(section, data, bar) {
    this.section = section;
    this.bar = bar;
    this.canvas = section.querySelector("canvas");
    this.box = section.querySelector(".canvas");
    this.hover = section.querySelector(".hover");
    this.data = data;
    const spans = this.data.spans;
    this.first = spans.reduce((least, span) => Math.min(least, span[START]), this.data.step[0]);
    this.last = spans.reduce((most, span) => Math.max(most, span[START] + span[LENGTH]), this.data.step[1]);
    this.view = [...this.data.step];
    this.chosen = null;
    this.lay();
    section.querySelector(".timeline-drawn").hidden = false;
    this.listen();
    this.resize();
  }

  // In which row of its lane each bar lies: the first that is free, so that what is called lies below its caller.
  lay() {
    this.lanes = this.data.lanes.map((name) => ({ name, rows: [] }));
    const order = [...this.data.spans].sort((a, b) => a[START] - b[START] || b[LENGTH] - a[LENGTH]);
    for (const span of order) {
      const rows = this.lanes[span[LANE]].rows;
      let at = rows.findIndex((row) => {
        const before = row[row.length - 1];
        return before[START] + before[LENGTH] <= span[START];
      });
      if (at < 0) at = rows.length;
      if (at >= DEEPEST) continue;
      if (at === rows.length) rows.push([]);
      rows[at].push(span);
    }
    let top = AXIS;
    for (const lane of this.lanes) {
      lane.top = top;
      top += TITLE + lane.rows.length * ROW + GAP;
    }
    this.height = top;
  }

  listen() {
    new ResizeObserver(() => this.resize()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.resize());
    for (const change of ["languagechange", "themechange"]) document.addEventListener(change, () => this.resize());
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    this.canvas.addEventListener("pointercancel", () => { this.dragged = null; });
    this.canvas.addEventListener("pointerleave", () => { this.hover.hidden = true; });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    for (const button of this.section.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => this.act(button.dataset.view));
    }
  }

  act(name) {
    const [start, end] = this.view;
    const middle = (start + end) / 2, length = end - start;
    const views = {
      in: () => this.zoom(0.5, middle),
      out: () => this.zoom(2, middle),
      earlier: () => this.show(start - length / 4, end - length / 4),
      later: () => this.show(start + length / 4, end + length / 4),
      step: () => this.show(...this.data.step),
      all: () => this.show(this.first, this.last),
    };
    views[name]();
  }

  key(event) {
    const actions = { "+": "in", "=": "in", "-": "out", ArrowLeft: "earlier", ArrowRight: "later", 0: "all", Home: "step" };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    this.act(actions[event.key]);
  }

  wheel(event) {
    event.preventDefault();
    const length = this.view[1] - this.view[0];
    const pixels = event.deltaMode === 1 ? 16 : 1;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = sideways * pixels * length / this.width;
      this.show(this.view[0] + by, this.view[1] + by);
    } else this.zoom(1.0015 ** (event.deltaY * pixels), this.time(event.offsetX));
  }

  press(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.dragged = { x: event.clientX, y: event.clientY, view: [...this.view], scroll: this.box.scrollTop, moved: false };
  }

  move(event) {
    if (!this.dragged) {
      this.point(event);
      return;
    }
    const { x, y, view, scroll } = this.dragged;
    if (Math.abs(event.clientX - x) + Math.abs(event.clientY - y) > 4) this.dragged.moved = true;
    if (!this.dragged.moved) return;
    this.hover.hidden = true;
    const by = (x - event.clientX) * (view[1] - view[0]) / this.width;
    this.show(view[0] + by, view[1] + by);
    if (event.pointerType === "mouse") this.box.scrollTop = scroll + y - event.clientY;
  }

  release(event) {
    const dragged = this.dragged;
    this.dragged = null;
    if (dragged && !dragged.moved) this.choose(this.at(event.offsetX, event.offsetY));
  }

  zoom(factor, around) {
    const [start, end] = this.view;
    this.show(around - (around - start) * factor, around + (end - around) * factor);
  }

  show(start, end) {
    const whole = this.last - this.first;
    const length = Math.min(Math.max(end - start, LEAST_VIEW), whole * 1.1);
    const middle = (start + end) / 2;
    const least = this.first - length / 2, most = this.last + length / 2;
    const from = Math.min(Math.max(middle - length / 2, least), most - length);
    this.view = [from, from + length];
    this.redraw();
  }

  // To the bar with this name nearest to a moment: it fills a third of the view.
  jump(microseconds, name) {
    const near = (span) => Math.abs(span[START] - microseconds) - (this.data.texts[span[NAME]] === name ? 1e9 : 0);
    let best = null;
    for (const span of this.data.spans) {
      if (this.data.kinds[span[KIND]][0] === "step" || span[START] > microseconds + 2) continue;
      if (span[START] + span[LENGTH] < microseconds) continue;
      if (best === null || near(span) < near(best)) best = span;
    }
    if (best) this.lead(best);
    else {
      const length = (this.data.step[1] - this.data.step[0]) / 20;
      this.choose(null);
      this.show(microseconds - length, microseconds + 2 * length);
    }
    this.section.scrollIntoView({ block: "start" });
    this.canvas.focus({ preventScroll: true });
  }

  lead(span) {
    const length = Math.max(span[LENGTH], LEAST_VIEW);
    this.choose(span);
    this.show(span[START] - length, span[START] + 2 * length);
    const lane = this.lanes[span[LANE]];
    const row = lane.rows.findIndex((each) => each.includes(span));
    this.box.scrollTop = lane.top + Math.max(row, 0) * ROW - this.box.clientHeight / 2;
  }

  // To the next bar whose name has this text; how many there are, and which of them this is.
  find(text) {
    const wanted = text.toLowerCase();
    const names = this.data.texts.map((each) => each.toLowerCase().includes(wanted));
    const found = this.data.spans.filter((span) => names[span[NAME]] && this.data.kinds[span[KIND]][0] !== "merged");
    found.sort((one, other) => one[START] - other[START]);
    if (!wanted || !found.length) return [0, 0];
    const at = (found.indexOf(this.chosen) + 1) % found.length;
    this.lead(found[at]);
    return [at + 1, found.length];
  }

  time(x) {
    return this.view[0] + x * (this.view[1] - this.view[0]) / this.width;
  }

  place(time) {
    return (time - this.view[0]) * this.width / (this.view[1] - this.view[0]);
  }

  at(x, y) {
    const lane = this.lanes.find((each) => y >= each.top + TITLE && y < each.top + TITLE + each.rows.length * ROW);
    if (!lane) return null;
    const row = lane.rows[Math.floor((y - lane.top - TITLE) / ROW)];
    const found = row.filter((span) => {
      const left = this.place(span[START]);
      return left <= x + 1 && left + Math.max(1, this.place(span[START] + span[LENGTH]) - left) >= x - 1;
    });
    return found.length ? found.reduce((a, b) => (Math.abs(this.place(a[START]) - x) < Math.abs(this.place(b[START]) - x) ? a : b)) : null;
  }

  nameOf(span) {
    const name = this.data.texts[span[NAME]], kind = this.data.kinds[span[KIND]][0];
    if (kind === "step") return `${inLanguage(this.data.words.step)} ${name}`;
    return kind === "merged" ? inLanguage(this.data.words.short).replace("{count}", name) : name;
  }

  said(span) {
    const [, english, chinese] = this.data.kinds[span[KIND]];
    const detail = this.data.texts[span[DETAIL]];
    const length = duration(span[LENGTH] / 1e6), start = duration(span[START] / 1e6);
    return [this.nameOf(span), detail, `${length} · @ ${start}`, inLanguage([english, chinese])].filter(Boolean);
  }

  point(event) {
    const span = this.at(event.offsetX, event.offsetY);
    this.hover.hidden = !span;
    this.canvas.classList.toggle("over", Boolean(span));
    if (!span) return;
    this.hover.replaceChildren(...this.said(span).map((text, at) => element(at ? "div" : "b", text)));
    const bounds = this.section.getBoundingClientRect();
    const left = event.clientX - bounds.left + 14, top = event.clientY - bounds.top + 16;
    this.hover.style.left = `${Math.max(0, Math.min(left, bounds.width - this.hover.offsetWidth - 4))}px`;
    this.hover.style.top = `${top}px`;
  }

  choose(span) {
    this.chosen = span;
    this.bar.textContent = span ? this.said(span).join(" · ") : "";
    this.redraw();
  }

  resize() {
    const scale = devicePixelRatio || 1;
    this.width = Math.max(this.box.clientWidth, 50);
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const style = getComputedStyle(this.section);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.colours = this.data.kinds.map(([kind]) => colour(`--kind-${kind}`));
    this.ink = colour("--ink");
    this.quiet = colour("--quiet");
    this.line = colour("--line");
    this.paper = colour("--paper");
    this.font = `11px ${colour("--sans")}`;
    this.scale = scale;
    if (this.chosen) this.bar.textContent = this.said(this.chosen).join(" · ");
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const pen = this.canvas.getContext("2d");
    pen.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = this.font;
    pen.textBaseline = "middle";
    this.axis(pen);
    for (const lane of this.lanes) {
      pen.fillStyle = this.quiet;
      pen.fillText(lane.name === "steps" ? inLanguage(this.data.words.steps) : lane.name, 2, lane.top + TITLE / 2);
      lane.rows.forEach((row, at) => this.drawRow(pen, row, lane.top + TITLE + at * ROW));
    }
    this.canvas.dataset.view = this.view.map((each) => each.toFixed(3)).join(" ");
  }

  axis(pen) {
    const length = this.view[1] - this.view[0];
    const rough = length / Math.max(2, this.width / 130);
    const power = 10 ** Math.floor(Math.log10(rough));
    const gap = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    for (let at = Math.ceil(this.view[0] / gap) * gap; at < this.view[1]; at += gap) {
      const x = Math.round(this.place(at)) + 0.5;
      pen.fillStyle = this.line;
      pen.fillRect(x, AXIS - 4, 1, this.height);
      pen.fillStyle = this.quiet;
      const label = gap >= 1e6 ? [at / 1e6, "s"] : gap >= 1e3 ? [at / 1e3, "ms"] : [at, "µs"];
      const digits = Math.max(0, -Math.floor(Math.log10(gap / (gap >= 1e6 ? 1e6 : gap >= 1e3 ? 1e3 : 1)) + 1e-9));
      pen.fillText(`${label[0].toFixed(digits)} ${label[1]}`, x + 3, AXIS / 2);
    }
  }

  drawRow(pen, row, top) {
    let painted = -1; // bars narrower than a pixel are painted once per pixel
    for (const span of row) {
      if (span[START] > this.view[1]) break;
      const end = this.place(span[START] + span[LENGTH]);
      if (end < 0 || (end < painted && span !== this.chosen)) continue;
      const left = Math.max(this.place(span[START]), -1);
      const wide = Math.max(Math.min(end, this.width + 1) - left, 0.75);
      painted = wide < 1 ? Math.floor(left) + 1 : painted;
      pen.globalAlpha = 0.85;
      pen.fillStyle = this.colours[span[KIND]];
      pen.fillRect(left, top, wide, ROW - 2);
      pen.globalAlpha = 1;
      if (span === this.chosen) {
        pen.strokeStyle = this.ink;
        pen.lineWidth = 2;
        pen.strokeRect(left, top, wide, ROW - 2);
      }
      if (wide > 36) this.label(pen, this.nameOf(span), left + 3, top, wide - 6);
    }
  }

  label(pen, text, left, top, wide) {
    const most = Math.floor(wide / 6);
    pen.fillStyle = this.paper;
    pen.fillText(text.length > most ? `${text.slice(0, Math.max(most - 1, 1))}…` : text, left, top + ROW / 2 - 1);
  }
}
