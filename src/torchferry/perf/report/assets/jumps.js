// From a row of evidence to its place in the timeline.

const section = named(root, "timeline");
if (section) {
  const timeline = new Timeline(section, dataOf(root, "spans"), named(root, "bar"));
  for (const button of root.querySelectorAll(".jump")) {
    button.hidden = false;
    button.addEventListener("click", () => timeline.jump(Number(button.dataset.at) * 1e6, button.dataset.name));
  }
  const search = named(root, "bars");
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    named(root, "found").textContent = timeline.find(search.value.trim()).join(" / ");
  });
}
