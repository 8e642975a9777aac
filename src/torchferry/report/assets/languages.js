// Pages that hold both languages, of which the style sheet shows one: the choice.

const root = document.documentElement;

function inLanguage(pair) {
  return pair[root.lang === "zh-CN" ? 1 : 0];
}

function choose(language) {
  root.lang = language;
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === language));
  }
}

for (const button of document.querySelectorAll("[data-language]")) {
  button.addEventListener("click", () => choose(button.dataset.language));
}
document.querySelector(".languages").hidden = false;
choose(root.lang);
