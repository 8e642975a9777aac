// The work list: causes by severity, each with why, what to do and its places.

const CAUSES_AT_ONCE = 40;
const PLACES_AT_ONCE = 50;
const FEW_PLACES = 3; // they are shown without being asked for

function showWork(findings) {
  const byItem = new Map();
  for (const finding of findings) {
    if (!byItem.has(finding.item)) byItem.set(finding.item, []);
    byItem.get(finding.item).push(finding);
  }
  const groups = SEVERITIES.map((severity) => [severity, ITEMS_OF_WORK.filter((item) => item.severity === severity && byItem.has(item))])
    .filter(([, items]) => items.length);
  const view = named(root, "view-work");
  view.replaceChildren(...(groups.length
    ? groups.map(([severity, items]) => workGroup(severity, items, byItem, groups.length === 1))
    : [box("p", "empty", word("no_match"))]));
}

function workGroup(severity, items, byItem, only) {
  const places = items.reduce((sum, item) => sum + byItem.get(item).length, 0);
  const heading = box("h2", "", both(severity.heading), element("span", number(places), "count"));
  const group = box("details", `group ${severity.kind}`,
    box("summary", "", heading, box("span", "quiet", both(severity.meaning))));
  group.open = only || severity.open;
  onceOpened(group, () => {
    const list = box("div", "items");
    paged(list, items, CAUSES_AT_ONCE, (item) => cause(item, byItem.get(item)));
    group.append(list);
  })();
  return group;
}

function cause(item, findings) {
  const made = box("article", `item cause ${item.severity.kind}`);
  const head = box("div", "cause-head", box("h3", "", prose(item.title)), box("span", "times", `× ${number(findings.length)}`));
  if (item.minutes) head.append(box("span", "effort quiet", both(item.minutes)));
  head.append(button("plain rule", item.rule.id, () => change({ view: "rules", rule: "" }, item.rule.id)));
  made.append(head);
  if (item.why[0]) made.append(labelled("why", item.why));
  if (item.does[0]) made.append(labelled("do", item.does, copyButton(() => inLanguage(item.does).replaceAll("`", ""))));
  if (item.url) made.append(sourceLink(item.url));
  made.append(placesOf(item, findings));
  return made;
}

function labelled(key, pair, ...more) {
  return box("p", "say", box("strong", "", word(key)), " ", prose(pair), ...more.map((each) => box("span", "", " ", each)));
}

function sourceLink(url) {
  const link = box("a", "source", word("source"));
  link.href = url;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return link;
}

function placesOf(item, findings) {
  const files = new Set(findings.map((finding) => finding.file)).size;
  const done = item.severity.open ? box("span", "quiet", "") : null;
  const places = box("details", "places",
    box("summary", "", word(findings.length === 1 ? "place" : files === 1 ? "places_one" : "places", { count: number(findings.length), files: number(files) }), done));
  const count = () => {
    const ticked = findings.filter((finding) => ticks.has(finding.fingerprint)).length;
    if (done) done.replaceChildren(...(ticked ? [" · ", word("ticked", { count: number(ticked) })] : []));
  };
  ticks.listeners.push(count);
  count();
  places.open = findings.length <= FEW_PLACES && item.severity.open;
  onceOpened(places, () => {
    const list = box("div", "place-list");
    paged(list, findings, PLACES_AT_ONCE, (finding) => placeRow(finding));
    places.append(list);
  })();
  return places;
}

function placeRow(finding) {
  const row = box("div", "place-row");
  row.dataset.ticked = "";
  if (isOpen(finding)) row.append(ticks.box(finding.fingerprint, worded("tick", { place: `${finding.file.path}:${finding.line}` })));
  const link = box("a", "place", box("span", "", finding.file.path), `:${finding.line}:${finding.col}`);
  link.href = "#";
  link.addEventListener("click", (event) => {
    event.preventDefault();
    change({ view: "files", file: finding.file.path, line: finding.line, query: "", rule: "", severities: new Set() });
  });
  row.append(link, codeOf(finding));
  return row;
}

function codeOf(finding) {
  const code = element("code", undefined, "line");
  if (!finding.after) {
    code.textContent = finding.source || finding.before;
    return code;
  }
  const [before, after] = lineDiff(finding.before, finding.after);
  code.append(...marked(before, "del"), finding.before ? element("span", " → ", "arrow") : "", ...marked(after, "ins"));
  return code;
}

function exportTicks() {
  const ticked = FINDINGS.filter((finding) => ticks.has(finding.fingerprint))
    .map((finding) => ({ rule: finding.item.rule.id, path: finding.file.path, line: finding.line, fingerprint: finding.fingerprint }));
  const text = JSON.stringify({ format: "torchferry-ticks", project: DATA.project, vendor: DATA.vendor, ticked }, null, 1);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "ticks.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
