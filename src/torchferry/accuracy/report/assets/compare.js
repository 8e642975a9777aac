const NUMBER = 0, OPERATOR = 1, VERDICT = 2, SORT = 3, ERRORS = 4, STEP = 5, PHASE = 6, PATH = 7, MODULE = 8, PLACE = 9,
  PICTURE = 10, WHY = 11, HOW = 12, GOLDEN = 13, TENSORS = 14;
const data = dataOf(root, "data");
const table = root.querySelector(".calls");
const body = table.tBodies[0];
const heads = [...table.tHead.rows[0].cells];
const filter = { query: "", verdicts: new Set(), module: null };
let order = data.rows.map((_, at) => at);
const pager = new Pager(root.querySelector(".pager"), (rows) => body.replaceChildren(...rows.map((at) => drawn(data.rows[at]))));

function figure(value) {
  if (value === null) return "";
  if (typeof value === "string") return value;
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e4 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}

function badge(verdict) {
  const [, english, chinese, tone, sign] = data.verdicts[verdict];
  const made = element("span", undefined, `badge ${tone}`);
  made.append(element("i", sign), both([english, chinese]));
  return made;
}

function verdictCell(row) {
  const cell = element("td");
  if (row[VERDICT] >= 0) cell.append(badge(row[VERDICT]));
  const sort = data.pairs[row[SORT]];
  if (sort[0]) cell.append(element("br"), both(sort));
  return cell;
}

function operatorCell(row) {
  const cell = element("td", codeOf(data.texts[row[OPERATOR]]));
  const golden = data.texts[row[GOLDEN]];
  if (golden) cell.append(element("br"), element("span", `= ${golden}`, "quiet"));
  return cell;
}

function drawn(row) {
  const made = element("tr", undefined, "opens");
  made.tabIndex = 0;
  const phase = data.texts[row[PHASE]];
  made.append(
    element("td", row[NUMBER], "number"), operatorCell(row), verdictCell(row), ...row[ERRORS].map((each) => element("td", figure(each), "number")),
    element("td", row[STEP], "number"), element("td", both(data.phases[phase] || [phase, phase])),
    element("td", codeOf(data.texts[row[MODULE]])), element("td", element("code", data.texts[row[PLACE]])),
    element("td", element("code", data.texts[row[PICTURE]], "picture")),
  );
  const toggle = () => {
    if (made.nextSibling && made.nextSibling.classList.contains("more-of")) made.nextSibling.remove();
    else made.after(details(row));
  };
  made.addEventListener("click", toggle);
  made.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
  return made;
}

function labelled(pair, content) {
  const line = element("p");
  line.append(both(pair), ": ", content);
  return line;
}

function details(row) {
  const cell = element("td");
  cell.colSpan = heads.length;
  const why = data.pairs[row[WHY]];
  if (why[0]) cell.append(labelled(data.words.why, both(why)));
  const how = data.how[data.texts[row[HOW]]];
  if (how) cell.append(labelled(data.words.match, both(how)));
  if (row[TENSORS].length) cell.append(tensors(row[TENSORS]));
  const made = element("tr", undefined, "more-of");
  made.append(cell);
  return made;
}

function tensors(list) {
  const made = element("table", undefined, "rules");
  const head = made.createTHead().insertRow();
  for (const pair of [data.words.tensor, ...data.figures, data.words.picture]) head.append(element("th", both(pair)));
  const rows = made.createTBody();
  for (const [name, figures, picture, reason] of list) {
    const line = rows.insertRow();
    line.append(element("td", element("code", data.texts[name])));
    if (figures) line.append(...figures.map((each) => element("td", figure(each))));
    else {
      const said = element("td", data.texts[reason]);
      said.colSpan = data.figures.length;
      line.append(said);
    }
    line.append(element("td", element("code", data.texts[picture], "picture")));
  }
  return made;
}

function fits(row) {
  if (filter.verdicts.size && (row[VERDICT] < 0 || !filter.verdicts.has(data.verdicts[row[VERDICT]][0]))) return false;
  const path = data.texts[row[PATH]];
  if (filter.module && path !== filter.module && !path.startsWith(`${filter.module}/`)) return false;
  if (!filter.query) return true;
  return [OPERATOR, MODULE, PLACE, GOLDEN].some((at) => data.texts[row[at]].toLowerCase().includes(filter.query));
}

function apply() {
  const shown = order.filter((at) => fits(data.rows[at]));
  sayCount(named(root, "shown"), shown.length);
  press(root.querySelectorAll("[data-verdict]"), (button) => filter.verdicts.has(button.dataset.verdict));
  const chosen = named(root, "chosen");
  chosen.hidden = !filter.module;
  chosen.textContent = filter.module ? `${filter.module} ✕` : "";
  pager.show(shown);
}

function value(row, column) {
  if (column === 2) return row[VERDICT] < 0 ? data.verdicts.length : row[VERDICT];
  if (column === 0) return row[NUMBER];
  if (column === 6) return row[STEP];
  if (column >= 3 && column <= 5) {
    const found = row[ERRORS][column - 3];
    return found === null ? -1 : found === "inf" ? Infinity : found;
  }
  return data.texts[row[{ 1: OPERATOR, 7: PHASE, 8: MODULE, 9: PLACE, 10: PICTURE }[column]]];
}

function sort(head, column) {
  const isError = head.dataset.sort === "number" && column > 2 && column < 6;
  const sign = turn(heads, head, isError ? "descending" : "ascending");
  const keyed = order.map((at) => [value(data.rows[at], column), at]);
  keyed.sort(([one, a], [other, b]) => sign * inOrder(one, other) || a - b);
  order = keyed.map(([, at]) => at);
  apply();
}

function chooseModule(path) {
  filter.module = path || null;
  apply();
}

sortable(heads, sort);
filtered(
  root.querySelector(".filters"),
  (text) => { filter.query = text; apply(); },
  (button) => {
    if (button.matches(".clear")) {
      filter.query = "";
      filter.module = null;
      filter.verdicts.clear();
      named(root, "query").value = "";
    }
    if (button.matches(".chosen")) filter.module = null;
    const verdict = button.dataset.verdict;
    if (verdict && !filter.verdicts.delete(verdict)) filter.verdicts.add(verdict);
    apply();
  },
);
for (const button of root.querySelectorAll("[data-module]")) {
  button.addEventListener("click", (event) => {
    event.preventDefault();
    chooseModule(button.dataset.module);
    named(root, "calls").scrollIntoView({ block: "start" });
  });
}
sort(heads[2], 2);
