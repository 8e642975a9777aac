// The tabs of a migration: a report is put in its place, and starts, when its tab is opened for the first time.

const panels = [...root.querySelectorAll("[data-panel]")];
const tabs = [...root.querySelectorAll("[data-stage]")];

const ticked = dataOf(root, "ticks");

// Ticks that are kept in the migration folder join those of this browser, once for each change.
function adoptTicks(holder) {
  const data = holder.querySelector('[data-report="findings"] script[id$="data"]');
  if (!ticked.names.length || !data) return;
  const { key } = JSON.parse(data.textContent);
  if (recalled(`adopted-${key}`) === ticked.stamp) return;
  const known = JSON.parse(recalled(`ticks-${key}`) || "[]");
  remember(`ticks-${key}`, JSON.stringify([...new Set([...known, ...ticked.names])]));
  remember(`adopted-${key}`, ticked.stamp);
}

function put(holder) {
  const data = holder.querySelector(":scope > script");
  if (!data) return;
  holder.innerHTML = JSON.parse(data.textContent);
  adoptTicks(holder);
  startReports(holder);
  choose(page.lang);
}

function open(key) {
  for (const panel of panels) panel.hidden = panel.dataset.panel !== key;
  for (const tab of tabs) {
    if (tab.dataset.stage === key) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  const panel = panels.find((each) => each.dataset.panel === key);
  panel.querySelectorAll(".stage-report").forEach(put);
}

// #proof opens a tab; the ids of its reports begin with its name: #proof-prove-settings leads to a place in it.
function follow() {
  const wanted = decodeURIComponent(location.hash.slice(1));
  const key = wanted.split("-")[0];
  if (!panels.some((panel) => panel.dataset.panel === key)) return;
  open(key);
  const place = wanted === key ? null : document.getElementById(wanted);
  if (place) place.scrollIntoView();
}

addEventListener("hashchange", follow);
open("overview");
follow();
