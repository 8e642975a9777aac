// The values of the step that is pointed at, beside each chart.

// The point whose position is nearest; positions ascend.
function nearest(points, position) {
  let low = 0;
  let high = points.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < position) low = middle;
    else high = middle;
  }
  return position - points[low][0] < points[high][0] - position ? low : high;
}

function valueLine(text) {
  const made = document.createElement("div");
  made.textContent = text;
  return made;
}

for (const figure of document.querySelectorAll("figure")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const plot = figure.querySelector(".plot");
  const cursor = figure.querySelector(".cursor");
  const box = figure.querySelector(".values");
  let at = -1;

  const show = (place) => {
    at = Math.max(0, Math.min(data.points.length - 1, place));
    const [position, step, values] = data.points[at];
    cursor.setAttribute("x1", position);
    cursor.setAttribute("x2", position);
    cursor.setAttribute("visibility", "visible");
    box.className = "values " + (position > data.width / 2 ? "left" : "right");
    box.replaceChildren(
      valueLine(inLanguage(data.step) + " " + step),
      ...data.names.map((name, index) => valueLine(inLanguage(name) + ": " + (values[index] || "–"))),
    );
    box.hidden = false;
  };
  const hide = () => {
    box.hidden = true;
    cursor.setAttribute("visibility", "hidden");
  };

  plot.setAttribute("tabindex", "0");
  plot.addEventListener("pointermove", (event) => {
    const frame = plot.getBoundingClientRect();
    show(nearest(data.points, ((event.clientX - frame.left) / frame.width) * data.width));
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight") show(at + 1);
    else if (event.key === "ArrowLeft") show(at < 0 ? data.points.length - 1 : at - 1);
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
  });
}
