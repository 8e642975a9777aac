// Long tables: sorted by a click on a head, filtered by text, divided into pages.

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
    this.pager = new Pager(root.querySelector(".pager"), (rows) => this.draw(rows));
    sortable(this.heads, (head, column) => this.sort(head, column));
    filtered(root.querySelector("form"), (text) => { this.query = text; this.apply(); }, () => {});
    this.apply();
  }

  sort(head, column) {
    const text = isText(this.kinds[column]);
    const sign = turn(this.heads, head, text ? "ascending" : "descending");
    const least = text ? "" : -Infinity;
    const value = (at) => {
      const cell = this.rows[at][column];
      return cell === null ? least : Array.isArray(cell) ? inLanguage(cell) : cell;
    };
    this.order.sort((a, b) => sign * inOrder(value(a), value(b)) || a - b);
    this.apply();
  }

  apply() {
    const shown = this.order.filter((at) => this.texts[at].includes(this.query));
    sayCount(this.root.querySelector(".shown"), shown.length);
    this.pager.show(shown);
  }

  draw(rows) {
    const drawn = rows.map((at) => {
      const made = element("tr");
      made.append(...this.rows[at].map((cell, column) => cellOf(this.kinds[column], cell)));
      return made;
    });
    this.root.querySelector("tbody").replaceChildren(...drawn);
  }
}

starts.push((root) => {
  for (const long of ownParts(root, ".long")) new LongTable(long);
});
