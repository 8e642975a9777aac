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
  const flush = () => { if (text) nodes.push(common ? text : element(tag, text)); text = ""; };
  for (const [part, isCommon] of parts) {
    if (isCommon !== common) { flush(); common = isCommon; }
    text += part;
  }
  flush();
  return nodes;
}

function fileBody(file) {
  const body = box("div", "body");
  if (file.reason) body.append(element("p", file.reason, "reason"));
  const explained = new Set();
  if (file.hunks.length) body.append(diffTable(file, explained));
  const elsewhere = file.findings.filter((finding) => !explained.has(finding.line));
  if (elsewhere.length) {
    if (file.hunks.length) body.append(box("h3", "", word("elsewhere")));
    const list = box("div", "items");
    paged(list, elsewhere, 50, (finding) => {
      const note = box("div", "elsewhere", element("span", `${finding.line}:${finding.col}`, "place"), codeOf(finding));
      note.append(noteElement({ finding, count: 1 }));
      return note;
    });
    body.append(list);
  } else if (!file.hunks.length && !file.reason) {
    body.append(box("p", "quiet", word("no_diff")));
  }
  return body;
}

function diffTable(file, explained) {
  const byLine = new Map();
  for (const finding of file.findings) {
    if (!byLine.has(finding.line)) byLine.set(finding.line, []);
    byLine.get(finding.line).push(finding);
  }
  const rows = file.hunks.filter((hunk) => !choices.hidesTrivial || hasOpen(hunk, byLine)).flatMap((hunk, index) => hunkRows(hunk, index));
  for (const row of rows) if (row.old) explained.add(row.old);
  placeNotes(rows, byLine);
  const body = box("tbody", "");
  const head = ["old_code", "new_code"].map((key) => {
    const cell = box("th", "", word(key));
    cell.colSpan = 2;
    cell.scope = "col";
    return cell;
  });
  const columns = box("colgroup", "", ...["n", "", "n", ""].map((kind) => box("col", kind)));
  const table = box("table", "diff", columns, box("thead", "", box("tr", "", ...head)), body);
  let shown = 0;
  const more = button("more", word("hunks_more"), next);
  function next() {
    for (const row of rows.slice(shown, shown + ROWS_AT_ONCE)) body.append(...rowElements(row));
    shown += ROWS_AT_ONCE;
    more.hidden = shown >= rows.length;
  }
  next();
  while (state.line && !more.hidden && !body.querySelector(`[data-line="${state.line}"]`)) next();
  return box("div", "diff-frame", table, more);
}

// Whether a person has to look at a line of this hunk.
function hasOpen([start, , lines], byLine) {
  let line = start;
  for (const [tag] of lines) {
    if (tag === "+") continue;
    if ((byLine.get(line) || []).some(isOpen)) return true;
    line += 1;
  }
  return false;
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
    const gap = box("td", "", "⋯ ", word("line", { count: row.start }));
    gap.colSpan = 4;
    return [box("tr", "gap", gap)];
  }
  let before = [row.before], after = [row.after];
  if (row.tag === "~") {
    const [oldParts, newParts] = lineDiff(row.before, row.after);
    before = marked(oldParts, "del");
    after = marked(newParts, "ins");
  }
  const line = box("tr", ROW_CLASS[row.tag],
    element("td", row.old ? String(row.old) : "", "n old"), box("td", "old code", ...before),
    element("td", row.new ? String(row.new) : "", "n new"), box("td", "new code", ...after));
  if (row.old) line.dataset.line = row.old;
  if (!row.notes.length) return [line];
  const notes = box("td", "", ...gatherNotes(row.notes).map(noteElement));
  notes.colSpan = 4;
  return [line, box("tr", "notes", notes)];
}

// Findings on one line that say the same are said once, with a count.
function gatherNotes(findings) {
  const groups = new Map();
  for (const finding of findings) {
    const key = finding.item;
    if (groups.has(key)) groups.get(key).count += 1;
    else groups.set(key, { finding, count: 1 });
  }
  return [...groups.values()];
}

// What a person has to look at can be ticked off here as well; j and k stop there.
function noteElement({ finding, count }) {
  const item = finding.item;
  const note = box("div", `note ${item.severity.kind}${isOpen(finding) ? " problem" : ""}`, badgeOf(item.severity), element("span", item.rule.id, "rule"));
  if (count > 1) note.append(element("span", `× ${count}`, "times"));
  const says = box("span", "says", prose(item.title));
  if (item.why[0]) says.append(". ", prose(finding.why));
  if (item.does[0]) says.append(" ", prose(item.does));
  if (item.url) says.append(" ", sourceLink(item.url));
  note.append(says);
  if (isOpen(finding)) {
    note.dataset.ticked = "";
    note.prepend(ticks.box(finding.fingerprint, worded("tick", { place: `${finding.file.path}:${finding.line}` })));
  }
  return note;
}
