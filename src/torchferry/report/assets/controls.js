// What tables and trees of all pages share: heads that sort, filters, pages of rows, buttons that open and close.

function sortable(heads, sort) {
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head, column));
    head.append(button);
  });
}

// The direction in which a click on a head sorts: `first` at first, then the other one. 1 is ascending, -1 descending.
function turn(heads, head, first) {
  const second = first === "ascending" ? "descending" : "ascending";
  const direction = head.getAttribute("aria-sort") === first ? second : first;
  for (const other of heads) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction);
  return direction === "ascending" ? 1 : -1;
}

function inOrder(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}

// A sentence in both languages that has a % where the number is to stand.
function sayCount(box, count) {
  for (const said of box.children) {
    said.dataset.form = said.dataset.form || said.textContent;
    said.textContent = said.dataset.form.replace("%", count.toLocaleString("en-US"));
  }
}

function filtered(form, onText, onButton) {
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("input").addEventListener("input", (event) => onText(event.target.value.trim().toLowerCase()));
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) onButton(button);
  });
}

function press(buttons, isPressed) {
  for (const button of buttons) button.setAttribute("aria-pressed", String(isPressed(button)));
}

// Rows in pages; `draw` shows those of one page.
class Pager {
  constructor(box, draw) {
    this.box = box;
    this.draw = draw;
    this.rows = [];
    this.page = 0;
    box.querySelector(".previous").addEventListener("click", () => this.go(this.page - 1));
    box.querySelector(".following").addEventListener("click", () => this.go(this.page + 1));
  }

  show(rows) {
    this.rows = rows;
    this.go(0);
  }

  go(page) {
    const size = 100;
    const pages = Math.max(1, Math.ceil(this.rows.length / size));
    this.page = Math.min(Math.max(page, 0), pages - 1);
    this.draw(this.rows.slice(this.page * size, (this.page + 1) * size));
    this.box.hidden = pages === 1;
    this.box.querySelector(".page").textContent = `${this.page + 1} / ${pages}`;
    this.box.querySelector(".previous").disabled = this.page === 0;
    this.box.querySelector(".following").disabled = this.page === pages - 1;
  }
}

// The buttons above a tree; its root stays open.
starts.push((root) => {
  for (const tools of ownParts(root, ".tools:has([data-open])")) tools.hidden = false;
  for (const button of ownParts(root, "[data-open]")) {
    button.addEventListener("click", () => {
      const open = button.dataset.open === "true";
      ownParts(root, ".tree details").forEach((details, at) => { details.open = open || at === 0; });
    });
  }
});
