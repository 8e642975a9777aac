// The rules that have found something, with what they are about and how often.

function showRules(chosen) {
  const view = named(root, "view-rules");
  const list = box("div", "rule-list");
  list.append(...DATA.rules.map((rule) => ruleEntry(rule, rule.id === chosen)));
  view.replaceChildren(list);
  const target = chosen ? list.querySelector(".chosen") : null;
  if (target) target.scrollIntoView({ block: "start" });
}

function ruleEntry(rule, isChosen) {
  const counts = SEVERITIES.map((severity, at) => [severity, rule.counts[at]]).filter(([, count]) => count);
  const entry = box("article", `item rule-entry${isChosen ? " chosen" : ""}`,
    box("div", "cause-head", box("h3", "", element("code", rule.id), " ", prose(rule.about || ["", ""])),
      box("span", "counts", ...counts.map(([severity, count]) => badgeOf(severity, count))),
      button("plain", word("show_findings"), () => change({ view: "work", rule: rule.id, query: "", severities: new Set() }))));
  if (rule.detail) entry.append(box("p", "say", prose(rule.detail)));
  const command = element("code", `ferry rules ${rule.id}`, "command");
  entry.append(box("p", "say quiet", word("more_about"), " ", command, " ", copyButton(() => command.textContent)));
  return entry;
}
