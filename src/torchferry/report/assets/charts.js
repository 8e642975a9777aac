// The values of the step that is pointed at, beside each chart.

// The place of the nearest position; positions ascend.
function nearest(positions, position) {
  let low = 0;
  let high = positions.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (positions[middle] < position) low = middle;
    else high = middle;
  }
  return position - positions[low] < positions[high] - position ? low : high;
}

function valueLine(text) {
  const made = document.createElement("div");
  made.textContent = text;
  return made;
}

// `read` tells what is drawn now: its width, the positions of its steps in that, and `lines`, the texts of one of them.
function pointedAt(figure, read) {
  const plot = figure.querySelector(".plot");
  const box = figure.querySelector(".values");
  let at = -1;

  const show = (place) => {
    const { width, positions, lines } = read();
    if (!positions.length) return;
    at = Math.max(0, Math.min(positions.length - 1, place));
    const cursor = figure.querySelector(".cursor");
    cursor.setAttribute("x1", positions[at]);
    cursor.setAttribute("x2", positions[at]);
    cursor.setAttribute("visibility", "visible");
    box.className = "values " + (positions[at] > width / 2 ? "left" : "right");
    box.replaceChildren(...lines(at).map(valueLine));
    box.hidden = false;
  };
  const hide = () => {
    box.hidden = true;
    figure.querySelector(".cursor").setAttribute("visibility", "hidden");
  };

  plot.setAttribute("tabindex", "0");
  plot.addEventListener("pointermove", (event) => {
    const frame = plot.getBoundingClientRect();
    const { width, positions } = read();
    show(nearest(positions, ((event.clientX - frame.left) / frame.width) * width));
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight") show(at + 1);
    else if (event.key === "ArrowLeft") show(at < 0 ? Infinity : at - 1);
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
  });
}

// The charts that are drawn already.
starts.push((root) => {
  for (const figure of ownParts(root, "figure")) {
    const held = figure.querySelector("script");
    if (!held) continue;
    const data = JSON.parse(held.textContent);
    const lines = (at) => {
      const [, step, values] = data.points[at];
      return [
        inLanguage(data.step) + " " + step,
        ...data.names.map((name, index) => inLanguage(name) + ": " + (values[index] || "–")),
      ];
    };
    const drawn = { width: data.width, positions: data.points.map((point) => point[0]), lines };
    pointedAt(figure, () => drawn);
  }
});
