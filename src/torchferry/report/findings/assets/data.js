// The packed data of the report as objects, and the words of the page.

const DATA = dataOf(root, "findings-data");
const SEVERITIES = DATA.severities;
const FILES = DATA.files.map(([path, status, reason, hunks]) => ({ path, status, reason, hunks, findings: [] }));
const FINDINGS = DATA.findings.map(([item, file, line, col, before, after, source, why, fingerprint]) => {
  const finding = { item, file: FILES[file], line, col, before, after, source, why, fingerprint };
  finding.file.findings.push(finding);
  return finding;
});
const ITEMS_OF_WORK = DATA.items.map((item) => ({
  ...item, rule: DATA.rules[item.rule], severity: SEVERITIES[item.severity], title: DATA.texts[item.title],
  why: DATA.texts[item.why], does: DATA.texts[item.does], findings: [],
}));
for (const finding of FINDINGS) {
  finding.item = ITEMS_OF_WORK[finding.item];
  finding.why = DATA.texts[finding.why];
  finding.item.findings.push(finding);
}
for (const file of FILES) {
  file.open = file.findings.filter(isOpen).length;
}
const ticks = new Ticks(DATA.key);
// Where nothing is left to do, the changes are what a reader wants to see.
const FIRST_VIEW = FINDINGS.some(isOpen) || !FILES.length ? "work" : "files";
const state = { view: FIRST_VIEW, severities: new Set(), rule: "", query: "", file: "", line: 0 };

function isOpen(finding) {
  return finding.item.severity.open;
}

function worded(key, values) {
  return DATA.words[key].map((text) => text.replace(/\{(\w+)\}/g, (whole, name) => (values && name in values ? String(values[name]) : whole)));
}

function word(key, values) {
  return both(worded(key, values));
}

function number(value) {
  return value.toLocaleString("en-US");
}

// An element with children; text is always text, never markup.
function box(name, kind, ...children) {
  const made = element(name, undefined, kind);
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

function button(kind, content, press) {
  const made = box("button", kind, content);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

// Sentences of which the pieces between backticks are code.
function prose(pair) {
  const parts = document.createDocumentFragment();
  ["en", "zh-CN"].forEach((language, at) => {
    const said = element("span");
    said.lang = language;
    const pieces = pair[at].split("`");
    if (pieces.length % 2 === 0) said.textContent = pair[at];
    else pieces.forEach((piece, place) => said.append(place % 2 ? element("code", piece) : piece));
    parts.append(said);
  });
  return parts;
}

// Appends items a page at a time, with a button for the next page.
function paged(container, items, size, build) {
  let shown = 0;
  const more = button("more", "", next);
  function next() {
    const slice = items.slice(shown, shown + size);
    shown += slice.length;
    more.before(...slice.map(build));
    const left = items.length - shown;
    more.hidden = left === 0;
    more.replaceChildren(word("show_more", { count: number(Math.min(size, left)), left: number(left) }));
  }
  container.append(more);
  next();
}

// Builds the inside of a details element when it opens for the first time.
function onceOpened(details, build) {
  let built = false;
  const look = () => {
    if (details.open && !built) {
      built = true;
      build();
    }
  };
  details.addEventListener("toggle", look);
  return look;
}

function badgeOf(severity, count) {
  const made = box("span", `badge ${severity.kind}`, both(severity.name));
  if (count !== undefined) made.append(element("span", ` ${number(count)}`));
  return made;
}
