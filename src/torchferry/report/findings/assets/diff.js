// One file: its side-by-side diff with each change explained, and its findings on lines that stay.

const ROWS_AT_ONCE = 400;
const MAX_TOKENS = 300;

// The parts of two lines, each marked as common or not.
function lineDiff(before, after) {
  const a = tokens(before), b = tokens(after);
  let start = 0, tail = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  while (tail < a.length - start && tail < b.length - start && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const [keptA, keptB] = commonTokens(a.slice(start, a.length - tail), b.slice(start, b.length - tail));
  const mark = (list, kept) => list.map((text, index) =>
    [text, index < start || index >= list.length - tail || kept.has(index - start)]);
  return [mark(a, keptA), mark(b, keptB)];
}

function tokens(line) {
  return line.match(/[A-Za-z0-9_]+|\s+|[^]/gu) || [];
}

// Positions of the longest common subsequence in both lists; none if they are too long to compare.
function commonTokens(a, b) {
  const keptA = new Set(), keptB = new Set();
  if (!a.length || !b.length || a.length > MAX_TOKENS || b.length > MAX_TOKENS) return [keptA, keptB];
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { keptA.add(i); keptB.add(j); i += 1; j += 1; }
    else if (length[i + 1][j] >= length[i][j + 1]) i += 1;
    else j += 1;
  }
  return [keptA, keptB];
}

// Marked text: neighbouring parts of the same sort become one node.
function marked(parts, tag) {
  const nodes = [];
  let text = "", common = true;
  const flush = () => { if (text) nodes.push(common ? text : el(tag, null, text)); text = ""; };
  for (const [part, isCommon] of parts) {
    if (isCommon !== common) { flush(); common = isCommon; }
    text += part;
  }
  flush();
  return nodes;
}

function fileBody(file) {
  const body = el("div", { class: "body" });
  if (file.reason) body.append(el("p", { class: "reason" }, file.reason));
  const explained = new Set();
  if (file.hunks.length) body.append(diffTable(file, explained));
  const elsewhere = file.findings.filter((finding) => !explained.has(finding.line));
  if (elsewhere.length) {
    if (file.hunks.length) body.append(el("h3", null, word("elsewhere")));
    const list = el("div", { class: "items" });
    paged(list, elsewhere, 50, (finding) => findingItem(finding, false));
    body.append(list);
  } else if (!file.hunks.length && !file.reason) {
    body.append(el("p", { class: "quiet" }, word("no_diff")));
  }
  return body;
}

function diffTable(file, explained) {
  const byLine = new Map();
  for (const finding of file.findings) {
    if (!byLine.has(finding.line)) byLine.set(finding.line, []);
    byLine.get(finding.line).push(finding);
  }
  const rows = file.hunks.flatMap((hunk, index) => hunkRows(hunk, index));
  for (const row of rows) if (row.old) explained.add(row.old);
  placeNotes(rows, byLine);
  const body = el("tbody", null);
  const table = el("table", { class: "diff" },
    el("colgroup", null, el("col", { class: "n" }), el("col"), el("col", { class: "n" }), el("col")),
    el("thead", null, el("tr", null,
      el("th", { colspan: 2, scope: "col" }, word("old_code")), el("th", { colspan: 2, scope: "col" }, word("new_code")))),
    body);
  let shown = 0;
  const more = el("button", { type: "button", class: "more", onclick: next }, word("hunks_more"));
  function next() {
    for (const row of rows.slice(shown, shown + ROWS_AT_ONCE)) body.append(...rowElements(row));
    shown += ROWS_AT_ONCE;
    more.hidden = shown >= rows.length;
  }
  next();
  while (state.line && !more.hidden && !body.querySelector(`[data-line="${state.line}"]`)) next();
  return el("div", { class: "diff-frame" }, table, more);
}

// The rows of a hunk with their line numbers, after a row that says where the hunk starts.
function hunkRows([oldStart, newStart, lines], index) {
  let oldLine = oldStart, newLine = newStart;
  const rows = index || oldStart > 1 ? [{ tag: "@", start: oldStart }] : [];
  for (const [tag, before, after] of lines) {
    const row = { tag, before, after: after ?? before, old: 0, new: 0 };
    if (tag !== "+") row.old = oldLine++;
    if (tag !== "-") row.new = newLine++;
    rows.push(row);
  }
  return rows;
}

// Gives each row the findings of its line; they stand below the lines that were added right after it.
function placeNotes(rows, byLine) {
  let waiting = [];
  rows.forEach((row, index) => {
    waiting.push(...((row.old && byLine.get(row.old)) || []));
    const next = rows[index + 1];
    row.notes = next && next.tag === "+" ? [] : waiting;
    if (row.notes === waiting) waiting = [];
  });
}

const ROW_CLASS = { " ": "same", "~": "changed", "+": "added", "-": "removed" };

function rowElements(row) {
  if (row.tag === "@") {
    return [el("tr", { class: "gap" }, el("td", { colspan: 4 }, `⋯ ${word("line")} ${row.start}`))];
  }
  let before = [row.before], after = [row.after];
  if (row.tag === "~") {
    const [oldParts, newParts] = lineDiff(row.before, row.after);
    before = marked(oldParts, "del");
    after = marked(newParts, "ins");
  }
  const line = el("tr", { class: ROW_CLASS[row.tag], "data-line": row.old || null },
    el("td", { class: "n old" }, row.old ? String(row.old) : ""), el("td", { class: "old code" }, ...before),
    el("td", { class: "n new" }, row.new ? String(row.new) : ""), el("td", { class: "new code" }, ...after));
  if (!row.notes.length) return [line];
  const notes = el("td", { colspan: 4 }, ...gatherNotes(row.notes).map(noteElement));
  return [line, el("tr", { class: "notes" }, notes)];
}

// Findings on one line that say the same are said once, with a count.
function gatherNotes(findings) {
  const groups = new Map();
  for (const finding of findings) {
    const key = [finding.rule, finding.kind.id, ...finding.message].join("\n");
    if (groups.has(key)) groups.get(key).count += 1;
    else groups.set(key, { finding, count: 1 });
  }
  return [...groups.values()];
}

function noteElement({ finding, count }) {
  return el("div", { class: `note ${finding.kind.id}` },
    kindLabel(finding.kind), el("span", { class: "rule" }, finding.rule), count > 1 ? el("span", { class: "times" }, `×${count}`) : "",
    el("span", { class: "says" }, say(finding.message), sourceLink(finding)));
}

function kindLabel(kind) {
  return el("span", { class: `kind ${kind.id}` }, say(kind.name));
}

function sourceLink(finding) {
  if (!finding.url) return "";
  return el("a", { class: "source", href: finding.url, target: "_blank", rel: "noopener noreferrer" }, word("source"));
}
