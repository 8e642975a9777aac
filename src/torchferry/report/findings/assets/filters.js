// Which findings and files are shown, and the same choice as the hash of the address.

function terms() {
  return state.query.toLowerCase().split(/\s+/).filter(Boolean);
}

function findingText(finding) {
  finding.text ??= [finding.rule, finding.kind.id, ...finding.kind.name, finding.file.path, ...finding.message,
    finding.before, finding.after].join("\n").toLowerCase();
  return finding.text;
}

function fileText(file) {
  file.text ??= [file.path, file.reason, ...file.hunks.flatMap((hunk) => hunk[2].flatMap((row) => row.slice(1)))]
    .join("\n").toLowerCase();
  return file.text;
}

function holds(text, wanted) {
  return wanted.every((term) => text.includes(term));
}

// Findings that pass every filter; the kind can be left out, for the counts on the kind buttons.
function matchingFindings(anyKind) {
  const wanted = terms();
  return FINDINGS.filter((finding) =>
    (anyKind || !state.kinds.size || state.kinds.has(finding.kind.id)) &&
    (!state.rule || finding.rule === state.rule) &&
    (!state.file || finding.file.path === state.file) &&
    holds(findingText(finding), wanted));
}

// Files with a matching finding; a search alone also looks into the lines of the diffs.
function matchingFiles(findings) {
  const hit = new Set(findings.map((finding) => finding.file));
  const byContent = !state.kinds.size && !state.rule;
  const wanted = terms();
  return FILES.filter((file) =>
    (!state.file || file.path === state.file) &&
    (hit.has(file) || (byContent && holds(fileText(file), wanted))));
}

function isFiltered() {
  return Boolean(state.kinds.size || state.rule || state.file || state.query);
}

function hashOf(values) {
  const parameters = new URLSearchParams();
  if (values.view !== "findings") parameters.set("view", values.view);
  if (values.kinds.size) parameters.set("kind", [...values.kinds].join(","));
  for (const key of ["rule", "file", "line"]) if (values[key]) parameters.set(key, values[key]);
  if (values.query) parameters.set("q", values.query);
  if (values.language !== DATA.language) parameters.set("lang", values.language);
  return "#" + parameters.toString();
}

function readHash() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const kinds = (parameters.get("kind") || "").split(",");
  const view = parameters.get("view");
  state.view = ["findings", "files", "rules"].includes(view) ? view : "findings";
  state.kinds = new Set(KINDS.map((kind) => kind.id).filter((id) => kinds.includes(id)));
  state.rule = known(parameters.get("rule"), DATA.rules.map((rule) => rule.id));
  state.file = known(parameters.get("file"), FILES.map((file) => file.path));
  state.line = Number(parameters.get("line")) || 0;
  state.query = parameters.get("q") || "";
  state.language = ["en", "zh"].includes(parameters.get("lang")) ? parameters.get("lang") : DATA.language;
}

function known(value, values) {
  return value !== null && values.includes(value) ? value : "";
}

function writeHash() {
  history.replaceState(null, "", hashOf(state));
}
