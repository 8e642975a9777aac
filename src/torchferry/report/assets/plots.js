// Charts: the curves that svg.py has drawn, anew in the width that there is, and those of scripts; with the values that are
// pointed at, and a closer look at a part of the steps.

const PLOT = { left: 62, right: 14, top: 12, bottom: 26, styles: 6, marks: 12, logarithmicFrom: 1000, limit: 1e300, fewest: 3 };
const PLOT_WORDS = {
  step: ["Step", "步骤"],
  axis: ["step", "步"],
  nothing: ["no finite value", "没有有限值"],
  bad: ["not finite", "非有限"],
  logarithmic: ["Logarithmic scale.", "对数坐标。"],
  below: ["Values of 0 or less can't be shown.", "不大于 0 的值无法显示。"],
  cross: ["A cross at the top edge: NaN or Inf.", "上边缘的叉号：NaN 或 Inf。"],
  whole: ["Show all steps", "显示全部步骤"],
  zoom: ["Drag across the chart for a closer look", "在图上拖动可放大一段"],
};

// The place of the nearest position; positions ascend.
function nearest(positions, position) {
  let low = 0;
  let high = positions.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (positions[middle] < position) low = middle;
    else high = middle;
  }
  return position - positions[low] < positions[high] - position ? low : high;
}

function valueLine(text) {
  const made = document.createElement("div");
  made.textContent = text;
  return made;
}

// How values of a kind are written; svg.py does the same.
const WRITTEN = {
  count: (value) => value.toLocaleString("en-US", { maximumFractionDigits: 2 }),
  number: (value, digits) => figureText(value, digits),
  size: (value) => {
    const at = Math.min(4, Math.max(0, Math.floor(Math.log(Math.max(Math.abs(value), 1)) / Math.log(1024) + 1e-9)));
    return at ? `${(value / 1024 ** at).toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB"][at]}` : `${value.toFixed(0)} B`;
  },
  time: (value) => duration(value),
};


function drawing(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function figureText(value, digits) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const rounded = Number(value.toPrecision(digits));
  return size >= 1e-4 && size < 1e7 ? String(rounded) : rounded.toExponential();
}

function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => power * factor).find((step) => step >= rough);
}

// How values become positions between `start` and `end`.
function scaleOf(low, high, isLogarithmic, start, end, kind) {
  const measure = isLogarithmic ? Math.log10 : (value) => value;
  const least = measure(low);
  const span = measure(high) - least || 1;
  const position = (value) => start + ((measure(Math.max(-PLOT.limit, Math.min(PLOT.limit, value))) - least) / span) * (end - start);
  const ticks = (about) => {
    if (isLogarithmic) {
      const first = Math.ceil(least - 1e-9), last = Math.floor(least + span + 1e-9);
      if (last - first < 1) { // one power of ten tells nothing of how far it is to the next
        const powers = Array.from({ length: last - first + 3 }, (_, at) => 10 ** (first - 1 + at));
        return powers.flatMap((power) => [power, 2 * power, 5 * power]).filter((value) => value >= low && value <= high);
      }
      const step = Math.floor((last - first) / about) + 1;
      return Array.from({ length: Math.max(0, Math.floor((last - first) / step) + 1) }, (_, at) => 10 ** (first + at * step));
    }
    const unit = kind === "size" && high >= 1 ? 1024 ** Math.floor(Math.log(high) / Math.log(1024) + 1e-9) : 1;
    const step = roundStep((high - low) / about / unit) * unit;
    const first = Math.ceil(low / step), last = Math.floor(high / step);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => Number(((first + at) * step).toPrecision(12)));
  };
  return { low, high, isLogarithmic, position, ticks };
}

// The scale of values: `wanted` is linear, logarithmic or automatic. null: there is nothing to draw.
function heightScale(curves, wanted, end, start, kind, shown) {
  let low = Infinity, high = -Infinity, least = Infinity;
  for (const curve of curves) {
    for (const values of [curve.low, curve.high]) {
      for (let at = shown[0]; at <= shown[1]; at += 1) {
        const value = values[at];
        if (!Number.isFinite(value)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
        if (value > 0 && value < least) least = value;
      }
    }
  }
  if (low === Infinity) return null;
  const isLogarithmic = wanted === "logarithmic" ? high > 0 : wanted === "automatic" && low > 0 && high / low >= PLOT.logarithmicFrom;
  if (isLogarithmic) {
    const room = least === high ? 2 : (high / least) ** 0.04;
    return scaleOf(least / room, high * room, true, start, end, kind);
  }
  if (kind && kind !== "number") return scaleOf(0, high * 1.05 || 1, false, start, end, kind); // an amount: from nothing on
  const margin = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
  return scaleOf(low - margin, high + margin, false, start, end, kind);
}

// One chart. `show` takes {title, names, steps: [first, last], curves: [{low, high, line, bad, said}], scale, height, digits, solid,
// style, events, notes, kinds, across}; a name or a title is a pair of English and Chinese, a value that is NaN is not there. `bad`
// counts what is not finite, `said` writes one of its values, an event is [step, kind].
class Plot {
  constructor(marks, figure = element("figure")) {
    this.marks = marks;
    this.figure = figure;
    this.plot = drawing("svg", { class: "plot", role: "img", tabindex: 0 });
    this.box = element("div", undefined, "values");
    this.box.hidden = true;
    this.whole = element("button", both(PLOT_WORDS.whole), "plain whole");
    this.whole.type = "button";
    this.whole.hidden = true;
    this.whole.addEventListener("click", () => this.look(null));
    this.held = element("div", undefined, "drawing");
    this.held.append(this.plot, this.box);
    Plot.every.add(this);
    this.range = null; // the first and the last place that are shown; null: all
    this.at = -1;
    this.drawn = [];
    this.width = 0;
    this.listen();
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width && width !== this.width) {
        this.width = width;
        if (this.chart) this.draw();
      }
    }).observe(this.held);
  }

  static every = new Set();

  static drawAll() {
    for (const plot of Plot.every) if (plot.chart && plot.width) plot.draw();
  }

  // A figure of its own, with title, legend and notes.
  static made(marks) {
    const plot = new Plot(marks);
    plot.title = element("b");
    plot.signs = element("ul", undefined, "signs");
    plot.notes = element("p", undefined, "quiet");
    const caption = element("figcaption");
    caption.append(plot.title, plot.signs, plot.whole);
    plot.figure.append(caption, plot.held, plot.notes);
    return plot;
  }

  // In a figure that has all that, and a picture that is taken away.
  static over(figure, data) {
    const plot = new Plot(data.marks, figure);
    figure.querySelector(".drawing").replaceWith(plot.held);
    figure.querySelector("figcaption").append(plot.whole);
    plot.show(chartOfData(data));
  }

  show(chart) {
    const before = this.chart;
    this.chart = chart;
    if (before && before.steps[0].length !== chart.steps[0].length) this.range = null;
    if (this.title) {
      this.title.replaceChildren(both(chart.title));
      this.signs.replaceChildren(...chart.names.map((name, at) => {
        const line = element("li");
        line.append(this.sign(at), both(name));
        return line;
      }));
    }
    if (this.width) this.draw();
  }

  // The steps between two places; null: all of them.
  look(range) {
    this.range = range;
    this.hide();
    this.draw();
    this.whole.hidden = !range;
  }

  get shown() {
    return this.range || [0, this.chart.steps[0].length - 1];
  }

  listen() {
    const { plot } = this;
    let from = null;
    const place = (event) => {
      const frame = plot.getBoundingClientRect();
      return nearest(this.drawn, ((event.clientX - frame.left) / frame.width) * this.width);
    };
    plot.addEventListener("pointermove", (event) => {
      if (!this.drawn.length) return;
      const at = place(event);
      this.point(at);
      if (from !== null) this.mark(from, at);
    });
    plot.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch" || !this.drawn.length) return;
      from = place(event);
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const [first, last] = [from, place(event)].sort((one, other) => one - other);
      from = null;
      const begin = this.shown[0];
      if (last - first >= PLOT.fewest) this.look([begin + first, begin + last]);
      else this.mark(0, 0);
    });
    plot.addEventListener("dblclick", () => this.look(null));
    plot.addEventListener("pointerleave", () => this.hide());
    plot.addEventListener("blur", () => this.hide());
    plot.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight") this.point(this.at + 1);
      else if (event.key === "ArrowLeft") this.point(this.at < 0 ? Infinity : this.at - 1);
      else if (event.key === "+" || event.key === "=") this.zoom(0.5);
      else if (event.key === "-") this.zoom(2);
      else if (event.key === "0") this.look(null);
      else if (event.key === "Escape") this.hide();
      else return;
      event.preventDefault();
    });
  }

  // By keys, around the step that is pointed at.
  zoom(factor) {
    const [first, last] = this.shown;
    const all = this.chart.steps[0].length - 1;
    const middle = this.at < 0 ? (first + last) / 2 : first + this.at;
    const half = Math.max(PLOT.fewest, (last - first) * factor) / 2;
    const range = [Math.max(0, Math.round(middle - half)), Math.min(all, Math.round(middle + half))];
    this.look(range[0] === 0 && range[1] === all ? null : range);
  }

  point(place) {
    const { drawn, box } = this;
    if (!drawn.length) return;
    this.at = Math.max(0, Math.min(drawn.length - 1, place));
    const cursor = this.plot.querySelector(".cursor");
    cursor.setAttribute("x1", drawn[this.at]);
    cursor.setAttribute("x2", drawn[this.at]);
    cursor.setAttribute("visibility", "visible");
    box.className = "values " + (drawn[this.at] > this.width / 2 ? "left" : "right");
    box.replaceChildren(...this.lines(this.shown[0] + this.at).map((text) => element("div", text)));
    box.hidden = false;
  }

  hide() {
    this.at = -1;
    this.box.hidden = true;
    const cursor = this.plot.querySelector(".cursor");
    if (cursor) cursor.setAttribute("visibility", "hidden");
  }

  // What is being chosen for a closer look.
  mark(from, to) {
    const chosen = this.plot.querySelector(".chosen-steps");
    const [left, right] = [this.drawn[from], this.drawn[to]].sort((one, other) => one - other);
    chosen.setAttribute("x", left);
    chosen.setAttribute("width", right - left);
  }

  sign(at) {
    const mark = drawing("path", { class: "mark", d: this.shape(at, 21, 9) });
    const line = drawing("path", { class: "curve", d: "M1 9H41" });
    return drawing("svg", { class: `sign s${this.style(at)}${this.chart.solid ? " solid" : ""}`, viewBox: "0 0 42 18", width: 42, height: 18, "aria-hidden": true }, line, mark);
  }

  style(at) {
    const { styles, style } = this.chart;
    return styles && styles.length ? styles[at] : (at + (style || 0)) % PLOT.styles;
  }

  shape(at, x, y) {
    const [left, above, path] = this.marks[this.style(at)];
    return `M${(x - left).toFixed(1)} ${(y - above).toFixed(1)}${path}`;
  }

  draw() {
    const { chart, width } = this;
    const [first, last] = chart.steps;
    const [start, stop] = this.shown;
    const bottom = chart.height - PLOT.bottom;
    const begin = first[start], end = last[stop];
    const kinds = chart.kinds || ["count", "number"];
    this.kinds = kinds;
    this.across = scaleOf(begin === end ? begin - 0.5 : begin, begin === end ? end + 0.5 : end, false, PLOT.left, width - PLOT.right);
    this.up = heightScale(chart.curves, chart.scale, PLOT.top, bottom, kinds[1], this.shown);
    const positions = [];
    for (let at = start; at <= stop; at += 1) positions.push(this.across.position((first[at] + last[at]) / 2));
    const parts = [...this.frame(bottom, width)];
    chart.curves.forEach((curve, at) => parts.push(this.curve(curve, at, positions, start)));
    parts.push(...this.events(bottom));
    parts.push(drawing("rect", { class: "chosen-steps", x: 0, width: 0, y: PLOT.top, height: bottom - PLOT.top }));
    parts.push(drawing("line", { class: "cursor", x1: 0, x2: 0, y1: PLOT.top, y2: bottom, visibility: "hidden" }));
    this.plot.setAttribute("viewBox", `0 0 ${width} ${chart.height}`);
    this.plot.classList.toggle("solid", Boolean(chart.solid));
    this.plot.replaceChildren(drawing("title", {}, `${inLanguage(chart.title)}. ${inLanguage(PLOT_WORDS.zoom)}`), ...parts);
    this.drawn = positions;
    this.whole.hidden = !this.range;
    if (this.notes) this.say();
  }

  *frame(bottom, width) {
    const { chart } = this;
    const below = { y: chart.height - 8 };
    for (const step of this.across.ticks(width > 500 ? 8 : 4)) {
      if (this.kinds[0] === "count" && step !== Math.floor(step)) continue;
      const x = this.across.position(step).toFixed(1);
      const anchor = width - x < 35 ? "end" : "middle";
      yield drawing("text", { x, ...below, "text-anchor": anchor }, WRITTEN[this.kinds[0]](step, 7));
      yield drawing("line", { class: "grid", x1: x, x2: x, y1: PLOT.top, y2: bottom });
    }
    for (const value of this.up ? this.up.ticks(5) : []) {
      const y = this.up.position(value);
      yield drawing("text", { x: PLOT.left - 7, y: (y + 4).toFixed(1), "text-anchor": "end" }, WRITTEN[this.kinds[1]](value, this.digits()));
      yield drawing("line", { class: "grid", x1: PLOT.left, x2: width - PLOT.right, y1: y.toFixed(1), y2: y.toFixed(1) });
    }
    yield drawing("path", { class: "axis", d: `M${PLOT.left} ${PLOT.top}V${bottom}H${width - PLOT.right}` });
    yield drawing("text", { class: "across", x: PLOT.left - 7, ...below, "text-anchor": "end" }, inLanguage(chart.across || PLOT_WORDS.axis));
    if (!this.up) {
      const text = inLanguage(PLOT_WORDS.nothing);
      yield drawing("text", { x: width / 2, y: chart.height / 2, "text-anchor": "middle" }, text);
    }
  }

  // As many as tell a tick from its neighbours.
  digits() {
    const { low, high, isLogarithmic } = this.up;
    if (isLogarithmic) return 7;
    const largest = Math.max(Math.abs(low), Math.abs(high));
    return Math.min(16, Math.max(7, Math.ceil(Math.log10(largest / roundStep((high - low) / 5))) + 1));
  }

  // A line, where there is one, and a band from the smallest to the largest, where these are not the same.
  curve(curve, at, positions, start) {
    const group = drawing("g", { class: `s${this.style(at)}` });
    const places = [], above = [], below = [];
    let line = "", crosses = "", band = "", pen = "M";
    const close = () => {
      if (above.length) band += `M${above.join("L")}L${below.reverse().join("L")}Z`;
      above.length = below.length = 0;
    };
    positions.forEach((x, index) => {
      const place = start + index;
      const low = this.height(curve.low[place]), high = this.height(curve.high[place]);
      const isBad = curve.bad && curve.bad[place] > 0;
      if (isBad) crosses += `M${(x - 4).toFixed(1)} ${PLOT.top}l8 8m0 -8l-8 8`;
      if (low === null || high === null) {
        if (isBad) {
          close();
          pen = "M";
        }
        return;
      }
      above.push(`${x.toFixed(1)} ${high.toFixed(1)}`);
      below.push(`${x.toFixed(1)} ${low.toFixed(1)}`);
      const middle = curve.line ? this.height(curve.line[place]) : (low + high) / 2;
      if (middle === null) return;
      line += `${pen}${x.toFixed(1)} ${middle.toFixed(1)}`;
      pen = "L";
      places.push([x, middle]);
    });
    close();
    if (curve.low !== curve.high) group.append(drawing("path", { class: "band", d: band }));
    if (curve.line) group.append(drawing("path", { class: "curve", d: line }));
    const every = Math.max(1, Math.ceil(places.length / PLOT.marks));
    const shift = Math.floor((at * every) / Math.max(1, this.chart.curves.length));
    const marks = places.filter((_, place) => place % every === shift % every).map(([x, y]) => this.shape(at, x, y));
    group.append(drawing("path", { class: "mark", d: marks.join("") }));
    if (crosses) group.append(drawing("path", { class: "mark bad", d: crosses }));
    return group;
  }

  height(value) {
    if (!this.up || Number.isNaN(value) || (this.up.isLogarithmic && value <= 0)) return null;
    return this.up.position(value);
  }

  *events(bottom) {
    for (const [step, kind] of this.chart.events || []) {
      const x = this.across.position(step);
      if (!(x >= PLOT.left - 1 && x <= this.width)) continue;
      yield drawing("line", { class: `event ${kind}`, x1: x.toFixed(1), x2: x.toFixed(1), y1: PLOT.top, y2: bottom });
    }
  }

  lines(at) {
    const { chart } = this;
    const [first, last] = chart.steps;
    const write = chart.writeStep || ((step) => WRITTEN[this.kinds[0]](step, 7));
    const step = first[at] === last[at] ? write(first[at]) : `${write(first[at])} – ${write(last[at])}`;
    return [`${inLanguage(chart.said || PLOT_WORDS.step)} ${step}`, ...chart.names.map((name, place) => {
      const curve = chart.curves[place];
      return `${inLanguage(name)}: ${curve.said ? curve.said(at) : this.value(curve, at)}`;
    })];
  }

  value(curve, at) {
    const low = curve.low[at], high = curve.high[at];
    const parts = Number.isNaN(low) && Number.isNaN(high) ? [] : low === high ? [low] : [low, high];
    const shown = (value) => (Number.isFinite(value) ? WRITTEN[this.kinds[1]](value, this.chart.digits) : "∞");
    const middle = parts.length > 1 && curve.line ? `${shown(curve.line[at])} (${parts.map(shown).join(" – ")})` : "";
    const said = middle || parts.map(shown).join(" – ");
    const bad = curve.bad && curve.bad[at] > 0 ? ` (${inLanguage(PLOT_WORDS.bad)}: ${curve.bad[at].toLocaleString("en-US")})` : "";
    return `${said || "–"}${bad}`;
  }

  say() {
    const { chart } = this;
    const said = [...chart.notes];
    if (this.up && this.up.isLogarithmic) said.push(PLOT_WORDS.logarithmic);
    if (chart.scale === "logarithmic" && chart.curves.some((curve) => curve.low.some((value) => value <= 0))) said.push(PLOT_WORDS.below);
    if (chart.curves.some((curve) => curve.bad && curve.bad.some((count) => count > 0))) said.push(PLOT_WORDS.cross);
    this.notes.replaceChildren(...said.flatMap((pair) => [both(pair), " "]));
  }
}

// The data of a figure that svg.py has drawn. Of several values in a step, the earlier ones lie before it.
function chartOfData(data) {
  const curves = data.values.map((values) => {
    const line = values.map((value) => (typeof value === "number" ? value : NaN));
    const bad = values.map((value) => (typeof value === "string" ? 1 : 0));
    const write = (value) => (typeof value === "string" ? value : WRITTEN[data.kinds[1]](value, 7));
    return { low: line, high: line, line, bad, said: (at) => (values[at] === null ? "–" : write(values[at])) };
  });
  const isWhole = (step) => step === Math.floor(step);
  const writeStep = data.kinds[0] === "count" ? (step) => (isWhole(step) ? String(step) : `${Math.ceil(step)} (${step.toFixed(2)})`) : null;
  return { ...data, steps: [data.steps, data.steps], curves, digits: 7, writeStep };
}

starts.push((root) => {
  for (const figure of ownParts(root, "figure")) {
    const held = figure.querySelector("script");
    if (held) Plot.over(figure, JSON.parse(held.textContent));
  }
});
document.addEventListener("languagechange", () => Plot.drawAll());
