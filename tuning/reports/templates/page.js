"use strict";
// Draws every figure of the page; `data-drawn` on the root element counts those that are done.
(() => {
  const parse = (node) => JSON.parse(node.textContent);
  const templates = {
    light: parse(document.getElementById("template-light")),
    dark: parse(document.getElementById("template-dark")),
  };
  const figures = [...document.querySelectorAll("script[data-figure]")].map((script) => ({
    node: document.getElementById(script.dataset.figure),
    spec: parse(script),
  }));
  const darkPage = matchMedia("(prefers-color-scheme: dark)");
  const paperWidth = 680; // pixels between the margins of an A4 page

  const draw = (printing) => figures.map(({ node, spec }) => {
    const template = templates[darkPage.matches && !printing ? "dark" : "light"];
    const layout = { ...structuredClone(spec.layout), template, autosize: !printing };
    if (printing) layout.width = paperWidth;
    const config = { responsive: true, displaylogo: false, displayModeBar: innerWidth > 600, modeBarButtons: [["toImage", "resetScale2d"]] };
    return Plotly.react(node, spec.data, layout, config);
  });

  Promise.all(draw(false)).then(() => {
    document.documentElement.dataset.drawn = String(figures.length);
  });
  darkPage.addEventListener("change", () => draw(false));

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((details) => { details.open = true; });
    draw(true);
  });
  addEventListener("afterprint", () => {
    folded.forEach((details) => { details.open = false; });
    draw(false);
  });
})();
