// From a row of evidence to its place in the timeline.

const drawing = document.getElementById("timeline");
if (drawing) {
  const timeline = new Timeline(drawing);
  for (const button of document.querySelectorAll(".jump")) {
    button.hidden = false;
    button.addEventListener("click", () => timeline.jump(Number(button.dataset.at) * 1e6, button.dataset.name));
  }
}
