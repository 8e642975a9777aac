// The theme that the reader has chosen, before the page is drawn for the first time.
(function () {
  try {
    const theme = localStorage.getItem("torchferry-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // the browser keeps nothing: the system's theme
  }
})();
