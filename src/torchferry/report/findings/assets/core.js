// The data, the words in two languages, and the making of elements.

const DATA = JSON.parse(document.getElementById("data").textContent);
const KINDS = DATA.kinds;

const FILES = DATA.files.map(([path, status, reason, hunks]) => ({
  path, status, reason, hunks, findings: [], counts: KINDS.map(() => 0),
}));

const FINDINGS = DATA.findings.map(([rule, kind, file, line, col, before, after, message, url]) => {
  const finding = {
    rule: DATA.rules[rule].id, kind: KINDS[kind], file: FILES[file], line, col, before, after,
    message: DATA.messages[message], url,
  };
  finding.file.findings.push(finding);
  finding.file.counts[kind] += 1;
  return finding;
});

const isEmpty = !FINDINGS.length && !FILES.length;

const state = { language: DATA.language, view: "findings", kinds: new Set(), rule: "", file: "", query: "", line: 0 };

// The text of a [English, Chinese] pair in the reader's language, with its {placeholders} filled.
function say(pair, values) {
  const text = pair[state.language === "zh" ? 1 : 0] || pair[0];
  return text.replace(/\{(\w+)\}/g, (whole, name) => (values && name in values ? String(values[name]) : whole));
}

function word(key, values) {
  return say(DATA.words[key], values);
}

function number(value) {
  return value.toLocaleString(state.language === "zh" ? "zh-CN" : "en");
}

// An element with attributes and children; text is always text, never markup.
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// Appends items a page at a time, with a button for the next page.
function paged(container, items, size, build) {
  let shown = 0;
  const more = el("button", { type: "button", class: "more", onclick: next });
  function next() {
    const slice = items.slice(shown, shown + size);
    shown += slice.length;
    more.before(...slice.map(build));
    const left = items.length - shown;
    more.hidden = left === 0;
    more.textContent = `${word("show_more", { count: number(Math.min(size, left)) })} · ${word("remaining", { count: number(left) })}`;
  }
  container.append(more);
  next();
}
