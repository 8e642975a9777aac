// What every page does: language, theme, keys, copy buttons, tables that scroll; and the start of the reports in it.

const page = document.documentElement;
const starts = []; // what shared scripts do for each report: functions of its element
const reports = {}; // what a report's own script does, by its kind

function inLanguage(pair) {
  return pair[page.lang === "zh-CN" ? 1 : 0];
}

function choose(language) {
  page.lang = language;
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === language));
  }
  for (const input of document.querySelectorAll("[data-placeholder]")) input.placeholder = inLanguage(input.dataset.placeholder.split("|"));
  for (const button of document.querySelectorAll("[data-title]")) button.title = inLanguage(button.dataset.title.split("|"));
  document.dispatchEvent(new Event("languagechange"));
}

// In a page of several reports each has a prefix of its own before all ids.
function named(root, name) {
  return root.querySelector(`[id="${root.dataset.prefix || ""}${name}"]`);
}

// What is the report's own, and not of one that stands inside it.
function ownParts(root, selector) {
  return [...root.querySelectorAll(selector)].filter((each) => each.closest("[data-report]") === root);
}

function dataOf(root, name) {
  return JSON.parse(named(root, name).textContent);
}

// The theme that was chosen is in the page before its first picture: see theme.js.
function chooseTheme(theme) {
  if (theme === "system") delete page.dataset.theme;
  else page.dataset.theme = theme;
  remember("theme", theme);
  showTheme();
  document.dispatchEvent(new Event("themechange"));
}

function showTheme() {
  const chosen = page.dataset.theme || "system";
  for (const button of document.querySelectorAll("[data-choose-theme]")) {
    button.setAttribute("aria-pressed", String(button.dataset.chooseTheme === chosen));
  }
}

// Browsers may forbid what is kept between visits: then nothing is.
function remember(name, value) {
  try {
    localStorage.setItem(`torchferry-${name}`, value);
  } catch {
    return;
  }
}

function recalled(name) {
  try {
    return localStorage.getItem(`torchferry-${name}`);
  } catch {
    return null;
  }
}

// Copying.

const COPY = ["Copy", "复制"], COPIED = ["Copied", "已复制"];

function twice(pair) {
  return ["en", "zh-CN"].map((language, at) => {
    const span = document.createElement("span");
    span.lang = language;
    span.textContent = pair[at];
    return span;
  });
}

function copyButton(text) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.append(...twice(COPY));
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    await copy(text());
    button.replaceChildren(...twice(COPIED));
    setTimeout(() => button.replaceChildren(...twice(COPY)), 1500);
  });
  return button;
}

async function copy(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return;
    } catch {
      // not allowed for this page: as browsers did it before
    }
  }
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

function addCopyButtons(root) {
  for (const block of ownParts(root, "pre")) {
    if (!block.textContent.trim() || block.parentNode.classList.contains("copied")) continue;
    const held = document.createElement("div");
    held.className = "copied";
    block.replaceWith(held);
    held.append(block, copyButton(() => block.innerText));
  }
}
starts.push(addCopyButtons);

// Tables wider than their place say that they can be moved sideways; the heads of all others stay in sight.

const SIDEWAYS = ["Scroll sideways for more columns", "左右滑动查看更多列"];

function watchWidth(box) {
  const table = box.querySelector("table, .tree");
  if (!table) return;
  const hint = document.createElement("p");
  hint.className = "sideways";
  hint.append("↔ ", ...twice(SIDEWAYS));
  hint.hidden = true;
  box.before(hint);
  let known = -1; // the width for which it is known to be too wide: a narrower first column must not make it fit again
  const look = () => {
    const width = box.clientWidth;
    if (!width || width === known) return;
    box.classList.remove("wide");
    const isWide = table.scrollWidth > width + 1;
    known = isWide ? width : -1;
    box.classList.toggle("wide", isWide);
    box.classList.toggle("fits", !isWide);
    hint.hidden = !isWide;
    if (isWide) box.tabIndex = 0; // so that keys can move it
    else box.removeAttribute("tabindex");
    markEnd();
  };
  // Filters above the table stay in sight, too.
  const filters = [...box.parentNode.children].find((each) => each.matches(".filters"));
  const makeRoom = () => {
    const sticks = filters && getComputedStyle(filters).position === "sticky";
    box.style.setProperty("--above", sticks ? `${filters.offsetHeight}px` : "0px");
  };
  const markEnd = () => box.classList.toggle("at-end", box.scrollLeft + box.clientWidth >= box.scrollWidth - 2);
  box.addEventListener("scroll", markEnd, { passive: true });
  const sizes = new ResizeObserver(() => {
    look();
    makeRoom();
  });
  sizes.observe(box);
  sizes.observe(table);
}
starts.push((root) => ownParts(root, ".scroll").forEach(watchWidth));

// Keys: j and k go through what is to be read one by one, / searches, ? says so.

const ITEMS = ".item, .finding, .problem, section[id]";

function visible(found) {
  return [...found].filter((each) => each.offsetParent !== null);
}

function go(by) {
  const items = visible(document.querySelectorAll(ITEMS));
  const inner = items.filter((item) => !item.querySelector(ITEMS));
  const place = inner.findIndex((item) => item.classList.contains("current"));
  const next = inner[place < 0 ? (by > 0 ? 0 : inner.length - 1) : Math.max(0, Math.min(inner.length - 1, place + by))];
  if (!next) return;
  for (const item of inner) item.classList.toggle("current", item === next);
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
  if (next.getBoundingClientRect().height > innerHeight) next.scrollIntoView({ block: "start" });
}

function help() {
  const box = document.getElementById("keys");
  if (box.open) box.close();
  else box.showModal();
}

const KEYS = {
  j: () => go(1),
  k: () => go(-1),
  "?": help,
  "/": () => {
    const [search] = visible(document.querySelectorAll('input[type="search"]'));
    if (search) search.focus();
  },
};

function isTyping(target) {
  return target.matches("input:not([type=checkbox]), select, textarea, [contenteditable]");
}

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !KEYS[event.key] || isTyping(event.target)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
}

// Reports. One that is hidden, in a page of several, starts when it is shown: startReports(the element that holds it).
const started = new WeakSet();

function startReports(holder) {
  for (const root of holder.querySelectorAll("[data-report]")) {
    if (started.has(root) || root.closest("[hidden]")) continue;
    started.add(root);
    for (const start of starts) start(root);
    const own = reports[root.dataset.report];
    if (own) own(root);
  }
}

function startPage() {
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => choose(button.dataset.language));
  }
  for (const button of document.querySelectorAll("[data-choose-theme]")) {
    button.addEventListener("click", () => chooseTheme(button.dataset.chooseTheme));
  }
  for (const button of document.querySelectorAll("[data-help]")) button.addEventListener("click", help);
  document.querySelector(".switches").hidden = false;
  const footer = document.querySelector("footer");
  for (const command of footer.querySelectorAll(".command")) command.after(copyButton(() => command.textContent));
  choose(page.lang);
  showTheme();
  listenToKeys();
  startReports(document);
}
