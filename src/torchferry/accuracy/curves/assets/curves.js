// The page of curves: charts of the training, charts of the modules that are chosen, and what is new while the program runs.

// A page that was opened in a frame of itself only hands over what it holds.
if (location.hash === "#hand-over") {
  const held = { data: named(root, "data").textContent, overview: root.querySelector(".overview").innerHTML };
  parent.postMessage(held, location.protocol === "file:" ? "*" : location.origin);
  return;
}

const ROW = 0, OWNER = 1, TENSOR = 2, CURVES = 3, APART = 4, RANKS = 5, EVENTS = 6;
const LABEL = 0, TYPE = 1, LAST = 2; // of a module; its last column is at LAST + 3
const NANS = 7, INFINITIES = 8; // of the fields of a series
const SIZES = { size: [0, 1, 2], mean: [3, 3, 3], extremes: [4, 5, null], zeros: [6, 6, 6], nans: [7, 7, 7], infinities: [8, 8, 8] }; // low, high, line
const LOWER = 150, MOST_CURVES = 12, MOST_CHOSEN = 8, UNANSWERED = 2;
let data = dataOf(root, "data");
let numbers = new Float32Array(0);
let bySeries = new Map(); // modules -> their series
const state = { chosen: [], figure: "size", scale: "automatic", query: "", sort: [0, 1] };
const plots = new Map(); // charts that are there, by what they show

// Numbers come as planes of bytes, made small: those of the lowest weight first.
async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = planes.length / 4;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < 4; plane += 1) {
    for (let at = 0; at < count; at += 1) bytes[4 * at + plane] = planes[plane * count + at];
  }
  return new Float32Array(bytes.buffer);
}

// A curve: a part of the numbers, a constant, or nothing.
function valuesOf(reference, count) {
  if (reference === null) return new Float32Array(count).fill(NaN);
  if (Array.isArray(reference)) return new Float32Array(count).fill(reference[0]);
  return numbers.subarray(reference, reference + count);
}

function curveOf(fields, which, count) {
  const [low, high, middle] = SIZES[which];
  const nans = valuesOf(fields[NANS], count), infinities = valuesOf(fields[INFINITIES], count);
  const bad = nans.map((value, at) => (value || 0) + (infinities[at] || 0));
  const isCount = which === "nans" || which === "infinities" || which === "zeros";
  const line = middle === null ? null : valuesOf(fields[middle], count);
  return { low: valuesOf(fields[low], count), high: valuesOf(fields[high], count), line, bad: isCount ? null : bad };
}

function titled(first, second) {
  return [`${first[0]}: ${second[0]}`, `${first[1]}：${second[1]}`];
}

function thinned(axis) {
  return axis.size > 1 ? [data.words.thinned.map((text) => text.replace("{count}", axis.size.toLocaleString("en-US")))] : [];
}

// The first style lets what lies above it show: it is golden's. Bands have no room for dashes.
function styled(axis) {
  const isAlone = data.runs.length === 1;
  return { solid: isAlone || axis.size > 1, style: isAlone ? 2 : 0 };
}

// What one chart shows: series with their names, of one row.
function chartOf(title, named, axis, which, notes) {
  const count = axis.first.length;
  const names = [], curves = [], events = [];
  for (const [name, series] of named) {
    for (let run = data.runs.length - 1; run >= 0; run -= 1) { // golden below, mine above it
      const fields = series[CURVES][run];
      if (!fields) continue;
      names.push(nameOf(name, run));
      curves.push(curveOf(fields, which, count));
      const ranks = series[RANKS][run];
      (ranks ? ranks[0] : []).forEach((extreme, at) => {
        const values = valuesOf(ranks[at + 1], count);
        names.push(nameOf(extreme, run));
        curves.push({ low: values, high: values, line: values });
      });
    }
    events.push(...(series[EVENTS] || []));
  }
  const more = names.length - MOST_CURVES;
  const said = [...thinned(axis), ...notes];
  if (more > 0) said.push(data.words.dropped.map((text) => text.replace("{count}", more)));
  for (const kind of ["spike", "first"]) if (events.some((event) => event[1] === kind)) said.push(data.words[kind]);
  const apart = named.map(([, series]) => series[APART]).filter((reference) => reference !== null);
  if (apart.length && apart.every((reference) => valuesOf(reference, count).every((value) => !(value > 0)))) said.push(data.words.equal);
  return {
    title, names: names.slice(0, MOST_CURVES), curves: curves.slice(0, MOST_CURVES), steps: [axis.first, axis.last], events,
    scale: state.scale, height: 230, digits: axis === data.axes[0] ? 7 : 5, notes: said, ...styled(axis),
  };
}

// With two runs, their names; with a tensor's, both.
function nameOf(name, run) {
  const runs = data.runs[run];
  if (data.runs.length === 1) return name[0] ? name : runs;
  return name[0] ? titled(name, runs) : runs;
}

function differenceOf(named, axis) {
  const count = axis.first.length;
  const known = named.filter(([, series]) => series[APART] !== null);
  if (!known.length) return null;
  const curves = known.slice(0, MOST_CURVES).map(([, series]) => {
    const values = valuesOf(series[APART], count);
    return { low: values, high: values, line: values, bad: values.map((value) => (value === Infinity ? 1 : 0)) };
  });
  if (curves.every((curve) => curve.low.every((value) => !(value > 0)))) return null;
  const names = known.slice(0, MOST_CURVES).map(([name]) => (name[0] ? name : data.words.both));
  return {
    title: data.words.difference, names, curves, steps: [axis.first, axis.last], scale: "logarithmic", digits: 3, notes: [], height: LOWER, solid: true, style: 2,
  };
}

// The charts in a box: those that stay keep their place in the page, so that nothing jumps.
function place(box, wanted) {
  const boxes = wanted.map(([key, chart, difference]) => {
    let pair = plots.get(key);
    if (!pair) {
      pair = { box: element("div", undefined, "pair"), upper: Plot.made(data.marks), lower: null };
      pair.box.append(pair.upper.figure);
      plots.set(key, pair);
    }
    pair.upper.show(chart);
    if (difference && !pair.lower) {
      pair.lower = Plot.made(data.marks);
      pair.lower.figure.className = "apart";
      pair.box.append(pair.lower.figure);
    }
    if (pair.lower) {
      pair.lower.figure.hidden = !difference;
      if (difference) pair.lower.show(difference);
    }
    return pair.box;
  });
  if (boxes.length !== box.children.length || boxes.some((each, at) => box.children[at] !== each)) box.replaceChildren(...boxes);
}

function showTraining() {
  const axis = data.axes[0];
  const wanted = [];
  for (const row of data.training) {
    const found = data.series.filter((series) => series[OWNER] < 0 && series[ROW] === row);
    if (!found.length) continue;
    const named = found.map((series) => [[series[TENSOR], series[TENSOR]], series]);
    wanted.push([row, chartOf(data.rows[row], named, axis, "size", []), row === "seconds" ? null : differenceOf(named, axis)]);
  }
  place(named(root, "training"), wanted);
}

function tensorName(module, series, isAlone) {
  const label = isAlone ? "" : data.modules[module][LABEL];
  const plain = series[TENSOR].startsWith("output_") && series[TENSOR].endsWith("_0") ? "" : series[TENSOR];
  const isTree = series[TENSOR] === "";
  const pair = isTree ? data.words.together : [plain, plain];
  const joined = pair.map((text) => [label, text].filter(Boolean).join(" "));
  return joined;
}

function showModules() {
  const box = named(root, "modules-drawn");
  if (!box) return;
  const axis = data.axes[1];
  const chosen = state.chosen.filter((at) => at < data.modules.length);
  const wanted = [];
  for (const row of Object.keys(data.sizes)) {
    const named = [];
    for (const module of chosen) {
      for (const series of bySeries.get(module) || []) {
        if (series[ROW] === row) named.push([tensorName(module, series, chosen.length === 1), series]);
      }
    }
    if (!named.length || (row === "update" && state.figure !== "size" && state.figure !== "nans")) continue;
    const figure = state.figure === "size" ? data.sizes[row] : data.figures[state.figure];
    const key = `module ${row}`;
    wanted.push([key, chartOf(titled(data.rows[row], figure), named, axis, state.figure, []), differenceOf(named, axis)]);
  }
  const order = ["module", "output_gradient", "gradient", "parameter", "update", "buffer"];
  wanted.sort(([one], [other]) => order.indexOf(one.slice(7)) - order.indexOf(other.slice(7)));
  place(box, wanted);
  const chips = chosen.map((at) => {
    const chip = element("button", `${data.modules[at][LABEL]} ✕`, "chip");
    chip.type = "button";
    chip.addEventListener("click", () => chooseModule(at, false));
    return chip;
  });
  named(root, "chosen").replaceChildren(...chips);
}

// The table of modules.

const table = root.querySelector(".modules");
const heads = table ? [...table.tHead.rows[0].cells] : [];
const pager = table && new Pager(root.querySelector(".pager"), (found) => table.tBodies[0].replaceChildren(...found.map(moduleRow)));

// Without the model's name where there is one model alone.
function shortLabel(module) {
  const [model, path] = module[LABEL].split(": ");
  return path && data.modules.every(([label]) => label === model || label.startsWith(`${model}: `)) ? path : module[LABEL];
}

function moduleRow(at) {
  const module = data.modules[at];
  const made = element("tr");
  const label = element("label");
  const box = element("input");
  box.type = "checkbox";
  box.checked = state.chosen.includes(at);
  box.addEventListener("change", () => chooseModule(at, box.checked));
  const path = element("code");
  shortLabel(module).split(".").forEach((part, place) => path.append(...(place ? [".", element("wbr"), part] : [part])));
  const name = element("div", path);
  if (module[TYPE] && module[TYPE] !== module[LABEL]) name.append(" ", element("span", module[TYPE]));
  label.append(box, name);
  made.append(element("td", label));
  module.slice(LAST).forEach((value, column) => {
    const isLast = column === 3;
    const cell = element("td", value === null ? "" : typeof value === "string" ? "∞" : figureText(value, isLast && data.runs.length === 1 ? 9 : 3));
    if (isLast && value !== null && (data.runs.length === 1 || value === "inf")) cell.className = "wrong";
    made.append(cell);
  });
  return made;
}

function chooseModule(at, isChosen) {
  state.chosen = state.chosen.filter((each) => each !== at);
  if (isChosen) state.chosen.push(at);
  state.chosen = state.chosen.slice(-MOST_CHOSEN);
  showModules();
  showTable(true);
  keep();
}

function showTable(staysOnPage) {
  if (!table) return;
  const [column, direction] = state.sort;
  const value = (at) => (column === 0 ? at : data.modules[at][LAST + column - 1]);
  const query = state.query.toLowerCase();
  const fits = ([label, type]) => !query || label.toLowerCase().includes(query) || type.toLowerCase().includes(query);
  const found = data.modules.map((_, at) => at).filter((at) => fits(data.modules[at]));
  const rank = (at) => {
    const known = value(at);
    return known === null ? Infinity : direction * (known === "inf" ? Infinity : known);
  };
  if (column !== 0 || direction !== 1) found.sort((one, other) => inOrder(rank(one), rank(other)) || one - other);
  const at = pager.page;
  sayCount(named(root, "shown"), found.length);
  pager.show(found);
  if (staysOnPage && at) pager.go(at);
}

root.querySelector(".overview").addEventListener("click", (event) => {
  const button = event.target.closest("[data-module]");
  const at = button ? data.modules.findIndex(([label]) => label === button.dataset.module) : -1;
  if (at < 0) return;
  chooseModule(at, true);
  named(root, "modules").scrollIntoView({ block: "start" });
});

// What is chosen, in the address.

function keep() {
  if (root.dataset.prefix) return; // the address is the whole page's
  const values = new URLSearchParams();
  for (const at of state.chosen) if (data.modules[at]) values.append("m", data.modules[at][LABEL]);
  if (state.figure !== "size") values.set("figure", state.figure);
  if (state.scale !== "automatic") values.set("scale", state.scale);
  if (state.query) values.set("q", state.query);
  if (state.sort[0] !== 0 || state.sort[1] !== 1) values.set("sort", state.sort.join(","));
  if (page.lang !== opened) values.set("lang", page.lang);
  history.replaceState(null, "", `#${values}`);
}

function recall() {
  const values = new URLSearchParams(location.hash.slice(1));
  const at = new Map(data.modules.map(([label], place) => [label, place]));
  state.chosen = values.getAll("m").map((label) => at.get(label)).filter((place) => place !== undefined);
  state.figure = values.get("figure") in SIZES ? values.get("figure") : "size";
  state.scale = ["linear", "logarithmic"].includes(values.get("scale")) ? values.get("scale") : "automatic";
  state.query = values.get("q") || "";
  const sort = (values.get("sort") || "0,1").split(",").map(Number);
  state.sort = sort[0] >= 0 && sort[0] < 5 && Math.abs(sort[1]) === 1 ? sort : [0, 1];
  if (["en", "zh-CN"].includes(values.get("lang"))) choose(values.get("lang"));
}

// The page as a whole.

const opened = page.lang;

function say(select) {
  for (const option of select.options) option.textContent = inLanguage([option.dataset.en, option.dataset.zh]);
}

function showAll() {
  root.querySelectorAll(".choices select").forEach(say);
  showTraining();
  showModules();
  showTable(true);
}

async function take(text) {
  const chosen = state.chosen.map((at) => data.modules[at] && data.modules[at][LABEL]);
  const found = JSON.parse(text);
  const unpackedNumbers = await unpacked(found.numbers);
  data = found;
  numbers = unpackedNumbers;
  bySeries = new Map();
  for (const series of data.series) {
    if (series[OWNER] < 0) continue;
    if (!bySeries.has(series[OWNER])) bySeries.set(series[OWNER], []);
    bySeries.get(series[OWNER]).push(series);
  }
  const at = new Map(data.modules.map(([label], place) => [label, place]));
  state.chosen = chosen.map((label) => at.get(label)).filter((place) => place !== undefined);
}

for (const [name, show] of [["scale", () => { showTraining(); showModules(); }], ["figure", showModules]]) {
  const select = named(root, name);
  if (select) select.addEventListener("change", () => { state[name] = select.value; show(); keep(); });
}
document.addEventListener("languagechange", () => { showAll(); keep(); });
root.querySelectorAll(".choices").forEach((each) => { each.hidden = false; });
if (table) {
  sortable(heads, (head, column) => {
    const isNumber = head.dataset.sort === "number";
    state.sort = [column, turn(heads, head, isNumber ? "descending" : "ascending")];
    showTable(false);
    keep();
  });
  filtered(
    root.querySelector(".filters"),
    (text) => { state.query = text; showTable(false); keep(); },
    (button) => {
      if (!button.matches(".clear")) return;
      state.query = named(root, "query").value = "";
      showTable(false);
      keep();
    },
  );
}

function begin() {
  recall();
  for (const name of ["scale", "figure"]) {
    const select = named(root, name);
    if (select) select.value = state[name];
  }
  if (table) named(root, "query").value = state.query;
  if (!state.chosen.length && data.modules.length) state.chosen = [0];
  if (table && (state.sort[0] !== 0 || state.sort[1] !== 1)) {
    heads[state.sort[0]].setAttribute("aria-sort", state.sort[1] === 1 ? "ascending" : "descending");
  }
  showAll();
}

// While the program runs: the file is opened once more in a frame, which hands over what it holds. A browser that does not let it is
// asked to load the page anew; the address keeps what is chosen.

let unanswered = 0;
let frame = null;

function look() {
  if (!data.live) return;
  if (document.hidden) {
    setTimeout(look, data.live * 1000);
    return;
  }
  if (frame) {
    frame.remove();
    unanswered += 1;
    if (unanswered >= UNANSWERED && location.protocol === "file:") {
      keep();
      location.reload();
      return;
    }
  }
  frame = element("iframe");
  frame.hidden = true;
  frame.src = `${location.href.split(/[?#]/)[0]}?${Date.now()}#hand-over`;
  document.body.append(frame);
  setTimeout(look, data.live * 1000 * (1 + 3 * unanswered));
}

addEventListener("message", async (event) => {
  if (!frame || event.source !== frame.contentWindow) return;
  frame.remove();
  frame = null;
  unanswered = 0;
  if (JSON.parse(event.data.data).written !== data.written) {
    await take(event.data.data);
    root.querySelector(".overview").innerHTML = event.data.overview;
    showAll();
  }
  sayState();
});

function sayState() {
  const box = named(root, "state");
  const isOld = Date.now() / 1000 - data.written > Math.max(60, 20 * data.live);
  const time = new Date(data.written * 1000).toLocaleTimeString();
  const said = isOld ? data.words.stale.map((text) => text.replace("{time}", time)) : data.words.live;
  box.replaceChildren(...(data.live ? [both(said)] : []));
}

unpacked(data.numbers).then(() => take(JSON.stringify(data))).then(() => {
  begin();
  sayState();
  if (data.live) setTimeout(look, data.live * 1000);
  document.body.dataset.ready = "true";
});
