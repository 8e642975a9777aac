// Which findings are shown, and the same choice as the hash of the address.

function searched(finding) {
  finding.text ??= [finding.item.rule.id, finding.item.severity.id, ...finding.item.title, ...finding.item.why,
    ...finding.item.does, finding.file.path, finding.before, finding.after, finding.source].join("\n").toLowerCase();
  return finding.text;
}

function matching(anySeverity) {
  const wanted = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  return FINDINGS.filter((finding) =>
    (anySeverity || !state.severities.size || state.severities.has(finding.item.severity.id)) &&
    (!state.rule || finding.item.rule.id === state.rule) &&
    wanted.every((term) => searched(finding).includes(term)));
}

function isFiltered() {
  return Boolean(state.severities.size || state.rule || state.query);
}

// A page of several reports has an address of its own.
const hasAddress = !root.dataset.prefix;

function writeHash() {
  if (!hasAddress) return;
  const parameters = new URLSearchParams();
  if (state.view !== FIRST_VIEW) parameters.set("view", state.view);
  if (state.severities.size) parameters.set("severity", [...state.severities].join(","));
  for (const key of ["rule", "file", "line"]) if (state[key]) parameters.set(key, state[key]);
  if (state.query) parameters.set("q", state.query);
  const hash = `#${parameters}`;
  if (hash !== (location.hash || "#")) history.pushState(null, "", hash);
}

function readHash() {
  if (!hasAddress) return;
  const parameters = new URLSearchParams(location.hash.slice(1));
  const severities = (parameters.get("severity") || "").split(",");
  const known = (name, values) => (values.includes(parameters.get(name)) ? parameters.get(name) : "");
  state.view = known("view", ["work", "files", "rules"]) || FIRST_VIEW;
  state.severities = new Set(SEVERITIES.map((severity) => severity.id).filter((id) => severities.includes(id)));
  state.rule = known("rule", DATA.rules.map((rule) => rule.id));
  state.file = known("file", FILES.map((file) => file.path));
  state.line = Number(parameters.get("line")) || 0;
  state.query = parameters.get("q") || "";
}
