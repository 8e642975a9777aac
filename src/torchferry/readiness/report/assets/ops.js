const table = root.querySelector(".operators");
const bodies = table ? [...table.tBodies] : [];
const heads = table ? [...table.tHead.rows[0].cells] : [];
const filter = { query: "", device: -1, supports: new Set() };
const texts = new Map();

function textOf(body) {
  if (!texts.has(body)) texts.set(body, body.textContent.toLowerCase());
  return texts.get(body);
}

function fits(body) {
  const supports = body.dataset.supports.split(" ");
  const asked = filter.device < 0 ? supports : [supports[filter.device]];
  return (!filter.supports.size || asked.some((support) => filter.supports.has(support)))
    && (!filter.query || textOf(body).includes(filter.query));
}

function apply() {
  let shown = 0;
  for (const body of bodies) {
    body.hidden = !fits(body);
    shown += body.hidden ? 0 : 1;
  }
  sayCount(named(root, "shown"), shown);
}

function showFilters() {
  press(root.querySelectorAll("[data-device]"), (button) => Number(button.dataset.device) === filter.device);
  press(root.querySelectorAll("[data-support]"), (button) => filter.supports.has(button.dataset.support));
  apply();
}

function clear() {
  filter.query = "";
  filter.device = -1;
  filter.supports.clear();
  named(root, "query").value = "";
  showFilters();
}

function value(body, column, kind) {
  const cell = body.rows[0].cells[column];
  return kind === "text" ? cell.textContent : Number(cell.dataset.value);
}

function sort(head, column) {
  const kind = head.dataset.sort;
  const sign = turn(heads, head, kind === "text" ? "ascending" : "descending");
  const keyed = bodies.map((body) => [value(body, column, kind), body]);
  keyed.sort(([one], [other]) => sign * (kind === "text" ? one.localeCompare(other) : one - other));
  table.append(...keyed.map(([, body]) => body));
}

// A link to an operator or a line leads there, whatever is filtered out or closed.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target || !root.contains(target)) return;
  if (target.hidden) clear();
  const details = target.matches("tbody") ? target.querySelector("details") : target.closest("details");
  if (details) details.open = true;
  target.scrollIntoView({ block: "center" });
}

// An operator's row opens what is below it, which takes no line of its own until then.
for (const body of bodies) {
  const details = body.querySelector("details");
  const name = body.rows[0].cells[0].firstChild;
  const opener = element("button", undefined, "plain opener");
  opener.type = "button";
  name.replaceWith(opener);
  opener.append(name);
  opener.setAttribute("aria-expanded", "false");
  opener.addEventListener("click", () => { details.open = !details.open; });
  details.addEventListener("toggle", () => opener.setAttribute("aria-expanded", String(details.open)));
}
if (table) table.classList.add("compact");

if (table) {
  sortable(heads, sort);
  filtered(
    root.querySelector(".filters"),
    (text) => { filter.query = text; apply(); },
    (button) => {
      if (button.matches(".clear")) return clear();
      if (button.dataset.device) filter.device = Number(button.dataset.device);
      const support = button.dataset.support;
      if (support && !filter.supports.delete(support)) filter.supports.add(support);
      showFilters();
    },
  );
  apply();
  addEventListener("hashchange", reveal);
  reveal();
}
