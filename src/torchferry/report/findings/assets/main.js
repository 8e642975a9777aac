// Start: the controls, and showing everything anew when the state changes.

function showControls(findings) {
  const query = named(root, "query");
  if (query.value.trim() !== state.query) query.value = state.query;
  named(root, "rule").value = state.rule;
  named(root, "clear").hidden = !isFiltered();
  const counts = new Map();
  for (const finding of matching(true)) counts.set(finding.item.severity.id, (counts.get(finding.item.severity.id) || 0) + 1);
  for (const chip of named(root, "severities").children) {
    chip.setAttribute("aria-pressed", String(state.severities.has(chip.dataset.severity)));
    chip.querySelector(".count").textContent = number(counts.get(chip.dataset.severity) || 0);
  }
  const totals = { work: findings.filter(isOpen).length, files: matchingFiles(findings).length, rules: DATA.rules.length };
  for (const tab of named(root, "tabs").children) {
    tab.querySelector(".count").textContent = number(totals[tab.dataset.view]);
    if (tab.dataset.view === state.view) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
    named(root, `view-${tab.dataset.view}`).hidden = tab.dataset.view !== state.view;
  }
  named(root, "filters").hidden = state.view === "rules";
}

function show(chosenRule) {
  const findings = matching(false);
  showControls(findings);
  if (state.view === "work") showWork(findings);
  if (state.view === "files") showFiles(findings);
  if (state.view === "rules") showRules(chosenRule);
}

function change(values, chosenRule) {
  Object.assign(state, { line: 0, file: "" }, values);
  writeHash();
  show(chosenRule);
}

function nameAllRules() {
  named(root, "rule").options[0].textContent = inLanguage(worded("all_rules"));
}

function listen() {
  nameAllRules();
  document.addEventListener("languagechange", nameAllRules);
  let timer = 0;
  named(root, "filters").hidden = false;
  named(root, "filters").addEventListener("submit", (event) => event.preventDefault());
  named(root, "query").addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => change({ query: event.target.value.trim() }), 150);
  });
  named(root, "rule").addEventListener("change", (event) => change({ rule: event.target.value }));
  named(root, "clear").addEventListener("click", () => {
    change({ query: "", rule: "", severities: new Set() });
    named(root, "query").focus();
  });
  named(root, "export").addEventListener("click", exportTicks);
  for (const tab of named(root, "tabs").children) tab.addEventListener("click", () => change({ view: tab.dataset.view }));
  for (const chip of named(root, "severities").children) {
    chip.addEventListener("click", () => {
      const severities = new Set(state.severities);
      if (!severities.delete(chip.dataset.severity)) severities.add(chip.dataset.severity);
      change({ severities });
    });
  }
  if (hasAddress) {
    addEventListener("popstate", () => {
      readHash();
      show();
    });
  }
}

if (FINDINGS.length || FILES.length) {
  readHash();
  listen();
  show();
}
