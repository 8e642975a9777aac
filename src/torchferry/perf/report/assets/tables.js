// Long tables: sorted by a click on a head, filtered by text, divided into pages.

const PAGE = 100;

function threeDigits(value) {
  const size = Math.abs(value);
  const digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function duration(seconds) {
  if (!seconds) return "0";
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) {
    if (Math.abs(seconds) >= size * 0.9995) return `${threeDigits(seconds / size)} ${unit}`;
  }
  return `${threeDigits(seconds / 1e-9)} ns`;
}

function signed(seconds) {
  return (seconds > 0 ? "+" : seconds < 0 ? "−" : "") + duration(Math.abs(seconds));
}

function share(value) {
  return value > 0 && value < 0.0005 ? "< 0.1%" : `${(value * 100).toFixed(1)}%`;
}

const shownAs = {
  time: duration,
  more: signed,
  share,
  ratio: (value) => value.toFixed(2),
  count: (value) => value.toLocaleString("en-US", { maximumFractionDigits: 2 }),
};

function cellOf(kind, value) {
  if (value === null || value === "") return element("td");
  if (kind === "code") return element("td", element("code", value));
  if (kind === "both") return element("td", both(value));
  return kind === "text" ? element("td", value) : element("td", shownAs[kind](value), "number");
}

function isText(kind) {
  return kind === "code" || kind === "text" || kind === "both";
}

class LongTable {
  constructor(root) {
    this.root = root;
    this.rows = JSON.parse(root.querySelector("script").textContent);
    this.heads = [...root.querySelectorAll("thead th")];
    this.kinds = this.heads.map((head) => head.dataset.kind);
    this.texts = this.rows.map((row) => row.filter((_, at) => isText(this.kinds[at])).flat().join("\n").toLowerCase());
    this.order = this.rows.map((_, at) => at);
    this.query = "";
    this.page = 0;
    this.prepare();
    this.apply();
  }

  prepare() {
    this.heads.forEach((head, column) => {
      const button = element("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => this.sort(head, column));
      head.append(button);
    });
    const form = this.root.querySelector("form");
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.querySelector("input").addEventListener("input", (event) => {
      this.query = event.target.value.trim().toLowerCase();
      this.apply();
    });
    this.root.querySelector(".previous").addEventListener("click", () => { this.page -= 1; this.show(); });
    this.root.querySelector(".following").addEventListener("click", () => { this.page += 1; this.show(); });
  }

  sort(head, column) {
    const text = isText(this.kinds[column]);
    const first = text ? "ascending" : "descending";
    const second = text ? "descending" : "ascending";
    const direction = head.getAttribute("aria-sort") === first ? second : first;
    for (const other of this.heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const least = text ? "" : -Infinity;
    const value = (at) => {
      const cell = this.rows[at][column];
      return cell === null ? least : Array.isArray(cell) ? inLanguage(cell) : cell;
    };
    this.order.sort((a, b) => {
      const one = value(a), other = value(b);
      return sign * (one < other ? -1 : one > other ? 1 : 0) || a - b;
    });
    this.apply();
  }

  apply() {
    this.shown = this.order.filter((at) => this.texts[at].includes(this.query));
    this.page = 0;
    for (const said of this.root.querySelectorAll(".shown > *")) {
      said.dataset.form = said.dataset.form || said.textContent;
      said.textContent = said.dataset.form.replace("%", this.shown.length.toLocaleString("en-US"));
    }
    this.show();
  }

  show() {
    const pages = Math.max(1, Math.ceil(this.shown.length / PAGE));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const rows = this.shown.slice(this.page * PAGE, (this.page + 1) * PAGE).map((at) => {
      const made = element("tr");
      made.append(...this.rows[at].map((cell, column) => cellOf(this.kinds[column], cell)));
      return made;
    });
    this.root.querySelector("tbody").replaceChildren(...rows);
    this.root.querySelector(".pager").hidden = pages === 1;
    this.root.querySelector(".page").textContent = `${this.page + 1} / ${pages}`;
    this.root.querySelector(".previous").disabled = this.page === 0;
    this.root.querySelector(".following").disabled = this.page === pages - 1;
  }
}

for (const root of document.querySelectorAll(".long")) new LongTable(root);
function placeholders() {
  for (const input of document.querySelectorAll("[data-placeholder]")) {
    input.placeholder = inLanguage(input.dataset.placeholder.split("|"));
  }
}
for (const button of document.querySelectorAll("[data-language]")) button.addEventListener("click", placeholders);
placeholders();
