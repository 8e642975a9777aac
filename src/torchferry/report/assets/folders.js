// A tree of folders made of paths: a folder that holds only one folder is shown as one line.

// `paths` are of files; `file(path, name)` makes what is shown of one, `folder(paths, name)` what stands beside the name of
// a folder with these files (nothing: null). Folders are open down to `depth`.
function folderTree(paths, { file, folder = () => null, depth = 1 }) {
  const root = { folders: new Map(), files: [] };
  for (const path of paths) {
    const parts = path.split("/");
    let place = root;
    for (const part of parts.slice(0, -1)) {
      if (!place.folders.has(part)) place.folders.set(part, { folders: new Map(), files: [] });
      place = place.folders.get(part);
    }
    place.files.push([path, parts[parts.length - 1]]);
  }
  const tree = document.createElement("div");
  tree.className = "folders";
  tree.append(...branches(root, { file, folder, depth }, 0));
  return tree;
}

function filesBelow(place) {
  return [...place.files.map(([path]) => path), ...[...place.folders.values()].flatMap(filesBelow)];
}

function branches(place, show, level) {
  const folders = [...place.folders].sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, inner]) => {
    let label = name, held = inner;
    while (!held.files.length && held.folders.size === 1) {
      const [[next, deeper]] = held.folders;
      label += `/${next}`;
      held = deeper;
    }
    const made = document.createElement("details");
    made.open = level < show.depth;
    const line = document.createElement("summary");
    const title = document.createElement("span");
    title.className = "folder";
    title.textContent = `${label}/`;
    line.append(title);
    const more = show.folder(filesBelow(held), label);
    if (more) line.append(more);
    const below = document.createElement("div");
    below.className = "below";
    below.append(...branches(held, show, level + 1));
    made.append(line, below);
    return made;
  });
  const files = place.files.sort(([one], [other]) => (one < other ? -1 : 1)).map(([path, name]) => show.file(path, name));
  return [...folders, ...files];
}
