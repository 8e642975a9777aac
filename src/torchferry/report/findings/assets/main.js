// Start: the controls, and showing everything anew when the state changes.

const control = (id) => document.getElementById(id);

function translate() {
  document.documentElement.lang = state.language === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = word(element.dataset.word);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", word(element.dataset.label));
  for (const element of document.querySelectorAll("[data-placeholder]")) element.placeholder = word(element.dataset.placeholder);
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === state.language));
  }
  control("title").replaceChildren(DATA.project, el("span", { class: "arrow" }, " → "), DATA.vendor);
  control("footer").textContent = word("made_by", { tool: DATA.tool });
  fillSelect("rule", word("all_rules"), DATA.rules.map((rule) => rule.id));
  fillSelect("file", word("all_files"), FILES.map((file) => file.path));
}

function fillSelect(id, all, values) {
  control(id).replaceChildren(el("option", { value: "" }, all), ...values.map((value) => el("option", { value }, value)));
}

function showControls() {
  control("query").value = state.query;
  control("rule").value = state.rule;
  control("file").value = state.file;
  control("clear").hidden = !isFiltered();
  const counts = new Map();
  for (const finding of matchingFindings(true)) counts.set(finding.kind.id, (counts.get(finding.kind.id) || 0) + 1);
  for (const button of control("kinds").children) {
    const kind = kindNamed(button.dataset.kind);
    button.setAttribute("aria-pressed", String(state.kinds.has(kind.id)));
    button.replaceChildren(say(kind.name), el("span", { class: "count" }, number(counts.get(kind.id) || 0)));
  }
}

function showTabs(findings) {
  const counts = { findings: findings.length, files: matchingFiles(findings).length, rules: DATA.rules.length };
  const names = { findings: word("tab_findings"), files: word("tab_files"), rules: word("rules") };
  for (const button of control("tabs").children) {
    const view = button.dataset.view;
    button.replaceChildren(names[view], el("span", { class: "count" }, number(counts[view])));
    if (view === state.view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
    control(`view-${view}`).hidden = view !== state.view;
  }
  control("filters").hidden = state.view === "rules";
}

function show() {
  const findings = matchingFindings(false);
  showControls();
  showTabs(findings);
  if (state.view === "findings") showFindings(findings);
  if (state.view === "files") showFiles(findings);
}

function showAll() {
  translate();
  showOverview();
  for (const id of ["tabs", "filters", "main"]) control(id).hidden = isEmpty;
  if (isEmpty) return;
  showRules();
  show();
}

function change(values) {
  Object.assign(state, { line: 0 }, values);
  writeHash();
  if ("language" in values) showAll();
  else show();
}

function listen() {
  let timer = 0;
  control("query").addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => change({ query: event.target.value.trim() }), 150);
  });
  control("rule").addEventListener("change", (event) => change({ rule: event.target.value }));
  control("file").addEventListener("change", (event) => change({ file: event.target.value }));
  control("clear").addEventListener("click", () => {
    change({ query: "", rule: "", file: "", kinds: new Set() });
    control("query").focus();
  });
  control("filters").addEventListener("submit", (event) => event.preventDefault());
  for (const button of control("tabs").children) button.addEventListener("click", () => change({ view: button.dataset.view }));
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => change({ language: button.dataset.language }));
  }
  for (const kind of KINDS) {
    control("kinds").append(el("button", { type: "button", class: `chip ${kind.id}`, "data-kind": kind.id, onclick: () => toggleKind(kind.id) }));
  }
  window.addEventListener("hashchange", () => {
    if (location.hash === "#main") return;
    readHash();
    showAll();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      control("query").focus();
    }
  });
}

function toggleKind(id) {
  const kinds = new Set(state.kinds);
  if (!kinds.delete(id)) kinds.add(id);
  change({ kinds });
}

readHash();
listen();
showAll();
