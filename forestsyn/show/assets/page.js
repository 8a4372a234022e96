"use strict";
(() => {
  const page = document.documentElement;
  const button = document.getElementById("theme");
  const name = document.getElementById("theme-name");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (page.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const tell = () => {
    name.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(isDark()));
  };
  button.addEventListener("click", () => {
    page.dataset.theme = isDark() ? "light" : "dark";
    tell();
  });
  prefersDark.addEventListener("change", tell);
  tell();

  const data = document.getElementById("charts");
  if (data) {
    const options = { actions: false, renderer: "svg", mode: "vega-lite", tooltip: { theme: "custom" } };
    const charts = JSON.parse(data.textContent);
    const shown = Object.keys(charts).map((key) => window.vegaEmbed(`#chart-${key}`, charts[key], options));
    Promise.all(shown).then(() => { page.dataset.charts = "shown"; });
  }
})();
