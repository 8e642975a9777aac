// The files: a tree of folders or a list with most to decide first; each file opens to its changes.

const FILES_AT_ONCE = 100;
const choices = { order: "folders", hidesTrivial: false, explains: true };
const opened = new Set(); // files that the reader has opened

function matchingFiles(findings) {
  const hit = new Set(findings.map((finding) => finding.file));
  const wanted = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  const byContent = !state.severities.size && !state.rule;
  return FILES.filter((file) =>
    (hit.has(file) || (byContent && wanted.every((term) => fileText(file).includes(term)))) &&
    (!choices.hidesTrivial || file.open || file.status === "failed" || file.path === state.file));
}

function fileText(file) {
  file.text ??= [file.path, file.reason, ...file.hunks.flatMap((hunk) => hunk[2].flatMap((row) => row.slice(1)))].join("\n").toLowerCase();
  return file.text;
}

function showFiles(findings) {
  const files = matchingFiles(findings);
  const byPath = new Map(files.map((file) => [file.path, file]));
  const list = box("div", "files");
  list.classList.toggle("unexplained", !choices.explains);
  if (!files.length) list.append(box("p", "empty", word("no_match")));
  else if (choices.order === "decide") paged(list, [...files].sort((one, other) => other.open - one.open), FILES_AT_ONCE, (file) => fileEntry(file, file.path));
  else {
    list.append(folderTree(files.map((file) => file.path), {
      file: (path, name) => fileEntry(byPath.get(path), name), folder: (paths) => openCount(paths.map((path) => byPath.get(path))),
      depth: files.length > FILES_AT_ONCE ? 1 : Infinity,
    }));
  }
  named(root, "view-files").replaceChildren(fileTools(list), list);
  scrollToLine(list);
}

function openCount(files) {
  const open = files.reduce((sum, file) => sum + file.open, 0);
  return open ? box("span", "count", word("open", { count: number(open) })) : null;
}

function fileTools(list) {
  const openAll = (isOpen) => [...list.querySelectorAll("details")].slice(0, FILES_AT_ONCE).forEach((each) => { each.open = isOpen; });
  return box("div", "tools",
    button("plain", word(choices.order === "folders" ? "sort_decide" : "sort_folders"), () => choose({ order: choices.order === "folders" ? "decide" : "folders" })),
    button("plain", word("expand_all"), () => openAll(true)), button("plain", word("collapse_all"), () => openAll(false)),
    toggle("hide_trivial", choices.hidesTrivial, (isOn) => choose({ hidesTrivial: isOn })),
    toggle("explain", choices.explains, (isOn) => choose({ explains: isOn })));
}

function choose(values) {
  Object.assign(choices, values);
  show();
}

function toggle(key, isOn, listener) {
  const input = element("input");
  input.type = "checkbox";
  input.checked = isOn;
  input.addEventListener("change", () => listener(input.checked));
  return box("label", "", input, word(key));
}

function fileEntry(file, name) {
  const counts = SEVERITIES.map((severity) => [severity, file.findings.filter((finding) => finding.item.severity === severity).length])
    .filter(([severity, count]) => count && severity.id !== "note");
  const entry = box("details", `file ${file.status}`,
    box("summary", "", element("span", name, "path"),
      box("span", `status ${file.status}`, both(DATA.statuses[file.status])),
      box("span", "counts", ...counts.map(([severity, count]) => badgeOf(severity, count)))));
  const look = onceOpened(entry, () => {
    entry.append(fileBody(file));
    scrollToLine(entry);
  });
  entry.addEventListener("toggle", () => (entry.open ? opened.add(file.path) : opened.delete(file.path)));
  entry.open = opened.has(file.path) || state.file === file.path;
  if (entry.open) queueMicrotask(() => { openAround(entry); look(); });
  return entry;
}

function openAround(entry) {
  for (let around = entry.parentElement; around && around !== root; around = around.parentElement) {
    if (around.tagName === "DETAILS") around.open = true;
  }
}

function scrollToLine(container) {
  const row = state.line ? container.querySelector(`.file[open] tr[data-line="${state.line}"], tr[data-line="${state.line}"]`) : null;
  if (!row) return;
  row.classList.add("target");
  row.scrollIntoView({ block: "center" });
}
