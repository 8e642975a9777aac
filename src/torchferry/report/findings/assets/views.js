// The overview and the three views: findings by kind, files with their diffs, rules.

const FINDINGS_AT_ONCE = 50;
const FILES_AT_ONCE = 100;
const opened = new Set(); // files that the reader opened, kept when the language changes

function showOverview() {
  const summary = DATA.summary;
  const box = document.getElementById("overview");
  if (isEmpty) {
    box.replaceChildren(el("p", { class: "empty" }, word("no_findings")), filesLine());
    return;
  }
  const parts = [["change", summary.automatic], ["todo", summary.todo], ["unsupported", summary.unsupported], ["unknown", summary.unknown]];
  box.replaceChildren(
    el("div", { class: "share" },
      el("div", { class: "big" }, summary.percent), el("div", null, word("percent_automatic")),
      el("div", { class: "quiet" }, word("of_sites", { count: number(summary.sites) }))),
    el("div", { class: "split" },
      stackedBar(parts, summary.sites),
      el("dl", { class: "legend" }, ...[...parts, ["risk", summary.by_kind.risk], ["info", summary.by_kind.info]].map(legendEntry)),
      filesLine()));
}

function filesLine() {
  const summary = DATA.summary;
  return el("p", { class: "quiet files-line" }, word(DATA.command === "convert" ? "files_line" : "files_line_scan", {
    seen: number(summary.files_seen), changed: number(summary.files_changed), failed: number(summary.files_failed),
  }));
}

function kindNamed(id) {
  return KINDS.find((kind) => kind.id === id);
}

// A place with a rewrite and no remark is automatic; the others are named like their finding.
function siteName(id) {
  return id === "change" ? word("percent_automatic") : say(kindNamed(id).name);
}

function legendEntry([id, count]) {
  return el("div", { class: `entry ${id}`, title: say(kindNamed(id).meaning) },
    el("dt", null, siteName(id)), el("dd", null, number(count)));
}

function stackedBar(parts, total) {
  const label = `${word("chart")}: ${parts.map(([id, count]) => `${siteName(id)} ${count}`).join(", ")}`;
  const bar = svg("svg", { class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img", "aria-label": label });
  let x = 0;
  for (const [id, count] of parts.filter((part) => part[1])) {
    const width = (count / total) * 1000;
    bar.append(svg("rect", { class: id, x, y: 0, width, height: 10 }, svg("title", null, `${siteName(id)} ${count}`)));
    x += width;
  }
  return bar;
}

function noMatch() {
  return el("p", { class: "empty" }, word("no_match"));
}

function showFindings(findings) {
  const groups = KINDS.map((kind) => [kind, findings.filter((finding) => finding.kind === kind)]).filter(([, list]) => list.length);
  const view = document.getElementById("view-findings");
  view.replaceChildren(...(groups.length ? groups.map(([kind, list]) => findingGroup(kind, list, groups.length === 1)) : [noMatch()]));
}

// Findings of one kind; what was done automatically starts folded because it asks nothing of the reader.
function findingGroup(kind, list, only) {
  const quiet = kind.id === "change" || kind.id === "info";
  const group = el("details", { class: `group ${kind.id}` },
    el("summary", null, el("h2", null, capital(say(kind.name)), el("span", { class: "count" }, number(list.length))),
      el("span", { class: "quiet" }, say(kind.meaning))));
  onceOpened(group, () => {
    const items = el("div", { class: "items" });
    paged(items, list, FINDINGS_AT_ONCE, (finding) => findingItem(finding, true));
    group.append(items);
  });
  group.open = only || !quiet;
  return group;
}

// Builds the inside of a details element when it opens for the first time.
function onceOpened(details, build) {
  let built = false;
  details.addEventListener("toggle", () => {
    if (details.open && !built) {
      built = true;
      build();
    }
  });
}

function findingItem(finding, withFile) {
  const target = hashOf({ ...state, view: "files", kinds: new Set(), rule: "", query: "", file: finding.file.path, line: finding.line });
  const place = `${finding.line}:${finding.col}`;
  const where = withFile
    ? el("a", { class: "place", href: target, title: word("open_file") }, el("span", null, finding.file.path), `:${place}`)
    : el("span", { class: "place" }, kindLabel(finding.kind), ` ${place}`);
  return el("article", { class: `item ${finding.kind.id}` },
    el("div", { class: "where" }, where, el("span", { class: "rule" }, finding.rule)),
    el("div", { class: "what" }, el("p", null, say(finding.message), sourceLink(finding)), ...codeOf(finding)));
}

function codeOf(finding) {
  if (!finding.before && !finding.after) return [];
  if (!finding.after) return [el("pre", null, finding.before)];
  const [before, after] = lineDiff(finding.before, finding.after);
  return [el("pre", null, ...marked(before, "del"), finding.before ? el("span", { class: "arrow" }, " → ") : "", ...marked(after, "ins"))];
}

function showFiles(findings) {
  const files = matchingFiles(findings);
  const view = document.getElementById("view-files");
  if (!files.length) {
    view.replaceChildren(noMatch());
    return;
  }
  const list = el("div", { class: "files" });
  const openAll = (open) => list.querySelectorAll("details").forEach((details) => { details.open = open; });
  view.replaceChildren(el("div", { class: "tools" },
    el("button", { type: "button", class: "plain", onclick: () => openAll(true) }, word("expand_all")),
    el("button", { type: "button", class: "plain", onclick: () => openAll(false) }, word("collapse_all")),
    explainSwitch()), list);
  paged(list, files, FILES_AT_ONCE, fileEntry);
  scrollToLine(list);
}

function explainSwitch() {
  const box = el("input", { type: "checkbox", checked: !document.body.classList.contains("unexplained"),
    onchange: () => document.body.classList.toggle("unexplained", !box.checked) });
  return el("label", null, box, word("explain"));
}

function fileEntry(file) {
  const counts = KINDS.map((kind, index) => [kind, file.counts[index]]).filter(([, count]) => count);
  const entry = el("details", { class: `file ${file.status}` },
    el("summary", null, el("span", { class: "path" }, file.path),
      el("span", { class: `status ${file.status}` }, say(DATA.statuses[file.status])),
      el("span", { class: "counts" }, ...counts.map(([kind, count]) =>
        el("span", { class: `kind ${kind.id}`, title: say(kind.name), "aria-label": `${say(kind.name)} ${count}` }, String(count))))));
  onceOpened(entry, () => {
    entry.append(fileBody(file));
    scrollToLine(entry);
  });
  entry.addEventListener("toggle", () => (entry.open ? opened.add(file.path) : opened.delete(file.path)));
  entry.open = opened.has(file.path) || state.file === file.path;
  return entry;
}

function scrollToLine(container) {
  const row = state.line ? container.querySelector(`tr[data-line="${state.line}"]`) : null;
  if (!row) return;
  row.classList.add("target");
  row.scrollIntoView({ block: "center" });
}

function showRules() {
  const kinds = KINDS.filter((kind) => DATA.summary.by_kind[kind.id]);
  const head = el("tr", null, el("th", { scope: "col" }, word("rule")), el("th", { scope: "col" }, word("about")),
    ...kinds.map((kind) => el("th", { scope: "col", class: "number" }, say(kind.name))),
    el("th", { scope: "col", class: "number" }, word("total")));
  document.getElementById("view-rules").replaceChildren(DATA.rules.length
    ? el("div", { class: "scroll" }, el("table", { class: "rules" }, el("thead", null, head), el("tbody", null, ...DATA.rules.map((rule) => ruleRow(rule, kinds)))))
    : noMatch());
}

function ruleRow(rule, kinds) {
  const target = hashOf({ ...state, view: "findings", kinds: new Set(), rule: rule.id, file: "", query: "", line: 0 });
  const total = rule.counts.reduce((sum, count) => sum + count, 0);
  return el("tr", null, el("th", { scope: "row" }, el("a", { href: target }, rule.id)), el("td", null, ...ruleAbout(rule)),
    ...kinds.map((kind) => countCell(rule.counts[KINDS.indexOf(kind)], kind)),
    el("td", { class: "number" }, number(total)));
}

function countCell(count, kind) {
  return el("td", { class: `number ${count ? kind.id : ""}` }, count ? number(count) : "");
}

function ruleAbout(rule) {
  const [before, after] = rule.example;
  const code = before || after ? [el("code", null, after ? (before ? `${before} → ${after}` : after) : before)] : [];
  return rule.about ? [say(rule.about)] : code;
}
