// Charts that a script draws from numbers, as svg.py draws those of pages that stay as they are.

const PLOT = { left: 62, right: 14, top: 12, bottom: 26, styles: 6, marks: 12, logarithmicFrom: 1000, limit: 1e300 };

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
function scaleOf(low, high, isLogarithmic, start, end) {
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
    const step = roundStep((high - low) / about);
    const first = Math.ceil(low / step), last = Math.floor(high / step);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => Number(((first + at) * step).toPrecision(12)));
  };
  return { low, high, isLogarithmic, position, ticks };
}

// The scale of values: `wanted` is linear, logarithmic or automatic. null: there is nothing to draw.
function heightScale(curves, wanted, end, start) {
  let low = Infinity, high = -Infinity, least = Infinity;
  for (const curve of curves) {
    for (const values of [curve.low, curve.high]) {
      for (const value of values) {
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
    return scaleOf(least / room, high * room, true, start, end);
  }
  const margin = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
  return scaleOf(low - margin, high + margin, false, start, end);
}

// One chart. `show` takes {title, names, steps: [first, last], curves: [{low, high, line, bad}], scale, height, digits, solid, style, events, notes}; a name or a
// title is a pair of English and Chinese, a value that is NaN is not there. `bad` counts what is not finite, an event is [step, kind].
class Plot {
  constructor(words, marks) {
    this.words = words;
    this.marks = marks;
    this.title = element("b");
    this.signs = element("ul", undefined, "signs");
    this.plot = drawing("svg", { class: "plot", role: "img" });
    this.box = element("div", undefined, "values");
    this.box.hidden = true;
    this.notes = element("p", undefined, "quiet");
    const caption = element("figcaption");
    caption.append(this.title, this.signs);
    const held = element("div", undefined, "drawing");
    held.append(this.plot, this.box);
    this.figure = element("figure");
    this.figure.append(caption, held, this.notes);
    this.drawn = { width: 1, positions: [], lines: () => [] };
    pointedAt(this.figure, () => this.drawn);
    this.width = 0;
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width && width !== this.width) {
        this.width = width;
        if (this.chart) this.draw();
      }
    }).observe(held);
  }

  show(chart) {
    this.chart = chart;
    this.title.replaceChildren(both(chart.title));
    this.signs.replaceChildren(...chart.names.map((name, at) => {
      const line = element("li");
      line.append(this.sign(at), both(name));
      return line;
    }));
    if (this.width) this.draw();
  }

  sign(at) {
    const mark = drawing("path", { class: "mark", d: this.mark(at, 21, 9) });
    const line = drawing("path", { class: "curve", d: "M1 9H41" });
    return drawing("svg", { class: `sign s${this.style(at)}${this.chart.solid ? " solid" : ""}`, viewBox: "0 0 42 18", width: 42, height: 18, "aria-hidden": true }, line, mark);
  }

  style(at) {
    return (at + this.chart.style) % PLOT.styles;
  }

  mark(at, x, y) {
    const [left, above, path] = this.marks[this.style(at)];
    return `M${(x - left).toFixed(1)} ${(y - above).toFixed(1)}${path}`;
  }

  draw() {
    const { chart, width } = this;
    const [first, last] = chart.steps;
    const bottom = chart.height - PLOT.bottom;
    const begin = first[0], end = last[last.length - 1];
    this.across = scaleOf(begin === end ? begin - 0.5 : begin, begin === end ? end + 0.5 : end, false, PLOT.left, width - PLOT.right);
    this.up = heightScale(chart.curves, chart.scale, PLOT.top, bottom);
    const positions = first.map((step, at) => this.across.position((step + last[at]) / 2));
    const parts = [...this.frame(bottom, width)];
    chart.curves.forEach((curve, at) => parts.push(this.curve(curve, at, positions)));
    parts.push(...this.events(bottom));
    parts.push(drawing("line", { class: "cursor", x1: 0, x2: 0, y1: PLOT.top, y2: bottom, visibility: "hidden" }));
    this.plot.setAttribute("viewBox", `0 0 ${width} ${chart.height}`);
    this.plot.classList.toggle("solid", chart.solid);
    this.plot.replaceChildren(drawing("title", {}, inLanguage(chart.title)), ...parts);
    this.drawn = { width, positions, lines: (at) => this.lines(at) };
    this.say();
  }

  *frame(bottom, width) {
    const { chart } = this;
    for (const step of this.across.ticks(width > 500 ? 8 : 4)) {
      if (step !== Math.floor(step)) continue;
      const x = this.across.position(step).toFixed(1);
      const anchor = width - x < 35 ? "end" : "middle";
      yield drawing("text", { x, y: chart.height - 8, "text-anchor": anchor }, step.toLocaleString("en-US"));
      yield drawing("line", { class: "grid", x1: x, x2: x, y1: PLOT.top, y2: bottom });
    }
    for (const value of this.up ? this.up.ticks(5) : []) {
      const y = this.up.position(value);
      yield drawing("text", { x: PLOT.left - 7, y: (y + 4).toFixed(1), "text-anchor": "end" }, figureText(value, 7));
      yield drawing("line", { class: "grid", x1: PLOT.left, x2: width - PLOT.right, y1: y.toFixed(1), y2: y.toFixed(1) });
    }
    yield drawing("path", { class: "axis", d: `M${PLOT.left} ${PLOT.top}V${bottom}H${width - PLOT.right}` });
    if (!this.up) {
      const text = inLanguage(this.words.nothing);
      yield drawing("text", { x: width / 2, y: chart.height / 2, "text-anchor": "middle" }, text);
    }
  }

  // A line, where there is one, and a band from the smallest to the largest, where these are not the same.
  curve(curve, at, positions) {
    const group = drawing("g", { class: `s${this.style(at)}` });
    const places = [], above = [], below = [];
    let line = "", crosses = "", band = "", pen = "M";
    const close = () => {
      if (above.length) band += `M${above.join("L")}L${below.reverse().join("L")}Z`;
      above.length = below.length = 0;
    };
    positions.forEach((x, place) => {
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
    const marks = places.filter((_, place) => place % every === shift % every).map(([x, y]) => this.mark(at, x, y));
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
    const step = first[at] === last[at] ? first[at].toLocaleString("en-US") : `${first[at].toLocaleString("en-US")} – ${last[at].toLocaleString("en-US")}`;
    return [`${inLanguage(this.words.step)} ${step}`, ...chart.names.map((name, place) => {
      const curve = chart.curves[place];
      const low = curve.low[at], high = curve.high[at];
      const parts = Number.isNaN(low) && Number.isNaN(high) ? [] : low === high ? [low] : [low, high];
      const shown = (value) => (Number.isFinite(value) ? figureText(value, chart.digits) : "∞");
      const middle = parts.length > 1 && curve.line ? `${shown(curve.line[at])} (${parts.map(shown).join(" – ")})` : "";
      const said = middle || parts.map(shown).join(" – ");
      const bad = curve.bad && curve.bad[at] > 0 ? ` (${inLanguage(this.words.bad)}: ${curve.bad[at].toLocaleString("en-US")})` : "";
      return `${inLanguage(name)}: ${said || "–"}${bad}`;
    })];
  }

  say() {
    const { chart, words } = this;
    const said = [...chart.notes];
    if (this.up && this.up.isLogarithmic) said.push(words.logarithmic);
    if (chart.scale === "logarithmic" && chart.curves.some((curve) => curve.low.some((value) => value <= 0))) said.push(words.below);
    if (chart.curves.some((curve) => curve.bad && curve.bad.some((count) => count > 0))) said.push(words.cross);
    this.notes.replaceChildren(...said.flatMap((pair) => [both(pair), " "]));
  }
}
