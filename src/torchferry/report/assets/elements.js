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
