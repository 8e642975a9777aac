// Long tables: sorted by a click on a head, filtered by text, divided into pages.

const shownAs = {
  time: duration,
  more: signed,
  share,
  ratio: (value) => value.toFixed(2),
  count: (value) => value.toLocaleString("en-US", { maximumFractionDigits: 2 }),
};

function cellOf(kind, value) {
  if (value === null || value === "") return element("td");
  if (kind === "code") return element("td", codeOf(value));
  if (kind === "both") return element("td", Array.isArray(value) ? both(value) : value, "lines");
  if (kind === "grade") return element("td", Array.isArray(value) ? badgeOf(value) : value);
  if (kind === "figure") return element("td", value[0], "number");
  return kind === "text" ? element("td", value, "lines") : element("td", shownAs[kind](value), "number");
}

function badgeOf([tone, english, chinese]) {
  const made = element("span", undefined, `badge ${tone}`);
  made.append(both([english, chinese]));
  return made;
}

function isText(kind) {
  return ["code", "text", "both", "grade"].includes(kind);
}

// What a cell is sorted by.
function keyOf(kind, cell) {
  if (cell === null) return isText(kind) ? "" : -Infinity;
  if (!Array.isArray(cell)) return cell;
  if (kind === "grade") return inLanguage(cell.slice(1));
  if (kind === "both") return inLanguage(cell);
  if (typeof cell[1] === "number") return cell[1];
  const number = parseFloat(cell[0].replaceAll(",", ""));
  return Number.isNaN(number) ? -Infinity : number;
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
    const value = (at) => keyOf(this.kinds[column], this.rows[at][column]);
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
