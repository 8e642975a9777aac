// Elements of pages whose rows are made by scripts.

function element(name, content, kind) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (content instanceof Node) made.append(content);
  else if (content !== undefined && content !== null) made.textContent = content;
  return made;
}

// Both languages; the style sheet shows one.
function both(pair) {
  const parts = document.createDocumentFragment();
  if (pair[0] === pair[1]) return element("span", pair[0]);
  ["en", "zh-CN"].forEach((language, at) => {
    const span = element("span", pair[at]);
    span.lang = language;
    parts.append(span);
  });
  return parts;
}

// Code that may be broken where the parts of a long path or name meet.
function codeOf(text) {
  const made = element("code");
  const parts = text.length > 20 ? text.split(/(?<=::|[/._,(=])(?=[^/._,(=:])/) : [text];
  parts.forEach((part, at) => made.append(...(at ? [document.createElement("wbr"), part] : [part])));
  return made;
}

// Numbers as units.py writes them.

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
