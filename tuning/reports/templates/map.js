"use strict";
// Draws the maps of the page: points or pictures, a legend that hides values, and the image under the pointer.
(() => {
  const STEPS = 1000, MARGIN = 14, RADIUS = 3.5, PLACED = 18, SHOWN = 72;

  function setUp(figure) {
    const content = JSON.parse(figure.querySelector("script").textContent);
    const count = content.names.length, inPlace = figure.querySelector(".map-pictures");
    const chosen = figure.querySelector(".map-colouring"), legend = figure.querySelector(".map-legend");
    const words = figure.querySelector(".map-shown"), sheet = new Image();
    const panels = [...figure.querySelectorAll("canvas")].map((canvas, i) => ({ canvas, points: content.panels[i] }));
    let colouring = content.colourings[0], hidden = new Set(), near = -1;

    const colourOf = (i) => colouring.colours[colouring.values[i]];
    const isShown = (i) => !hidden.has(colouring.values[i]);
    const valueOf = (one, i) => one.names.length ? `${one.name} ${one.names[one.values[i]]}` : "";

    function place({ canvas, points }, i) {
      const across = (canvas.clientWidth - 2 * MARGIN) / STEPS, up = (canvas.clientHeight - 2 * MARGIN) / STEPS;
      return [MARGIN + points[2 * i] * across, MARGIN + points[2 * i + 1] * up];
    }

    function picture(pen, i, left, top, side, frame) {
      const row = Math.floor(i / content.columns), column = i % content.columns, from = content.side;
      pen.fillStyle = colourOf(i);
      pen.fillRect(left - frame, top - frame, side + 2 * frame, side + 2 * frame);
      // Of a picture that is still being decoded, the frame stands alone until it is there.
      if (sheet.complete && sheet.naturalWidth) pen.drawImage(sheet, column * from, row * from, from, from, left, top, side, side);
    }

    function draw(panel) {
      const { canvas } = panel, wide = canvas.clientWidth, high = canvas.clientHeight, scale = devicePixelRatio || 1;
      canvas.width = Math.round(wide * scale);
      canvas.height = Math.round(high * scale);
      const pen = canvas.getContext("2d");
      pen.scale(scale, scale);
      pen.imageSmoothingEnabled = content.side >= PLACED;
      for (let i = 0; i < count; i += 1) {
        if (!isShown(i)) continue;
        const [x, y] = place(panel, i);
        if (inPlace.checked) {
          picture(pen, i, x - PLACED / 2, y - PLACED / 2, PLACED, 2);
          continue;
        }
        pen.beginPath();
        pen.arc(x, y, RADIUS, 0, 2 * Math.PI);
        pen.globalAlpha = colouring.names.length ? 0.75 : 1;
        pen.fillStyle = colourOf(i);
        pen.fill();
        pen.globalAlpha = 1;
        if (colouring.names.length) continue;
        // A colour of an image may be that of the page.
        pen.strokeStyle = "#8C8C8C";
        pen.lineWidth = 0.75;
        pen.stroke();
      }
      if (near < 0) return;
      const [x, y] = place(panel, near);
      pen.beginPath();
      pen.arc(x, y, RADIUS + 3, 0, 2 * Math.PI);
      pen.strokeStyle = getComputedStyle(canvas).color;
      pen.lineWidth = 2;
      pen.stroke();
      // Above the finger, and inside the map.
      const left = Math.min(Math.max(x + 14, 4), wide - SHOWN - 4);
      picture(pen, near, left, y - SHOWN - 14 < 4 ? Math.min(y + 14, high - SHOWN - 4) : y - SHOWN - 14, SHOWN, 3);
    }

    const drawAll = () => panels.forEach(draw);

    function show(i) {
      if (i === near || i < 0) return;
      near = i;
      words.textContent = [content.names[i], ...content.colourings.map((one) => valueOf(one, i))].filter(Boolean).join(" · ");
      drawAll();
    }

    function pointed(panel, event) {
      const box = panel.canvas.getBoundingClientRect();
      let best = -1, least = Infinity;
      for (let i = 0; i < count; i += 1) {
        if (!isShown(i)) continue;
        const [x, y] = place(panel, i), far = (box.left + x - event.clientX) ** 2 + (box.top + y - event.clientY) ** 2;
        if (far < least) { least = far; best = i; }
      }
      show(best);
    }

    function fillLegend() {
      legend.replaceChildren(...colouring.names.map((name, value) => {
        const button = document.createElement("button"), mark = document.createElement("i");
        button.type = "button";
        mark.style.background = colouring.colours[value];
        button.setAttribute("aria-pressed", "true");
        button.append(mark, name);
        button.addEventListener("click", () => {
          if (!hidden.delete(value)) hidden.add(value);
          button.setAttribute("aria-pressed", String(!hidden.has(value)));
          if (near >= 0 && !isShown(near)) near = -1;
          drawAll();
        });
        return button;
      }));
    }

    for (const panel of panels) {
      for (const kind of ["pointermove", "pointerdown"]) {
        panel.canvas.addEventListener(kind, (event) => pointed(panel, event));
      }
    }
    inPlace.addEventListener("change", drawAll);
    chosen?.addEventListener("change", () => {
      colouring = content.colourings[chosen.value];
      hidden = new Set();
      fillLegend();
      drawAll();
    });
    sheet.addEventListener("load", drawAll);
    sheet.src = content.sheet;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
    fillLegend();
    // Also the first drawing: an observer is told of the first size.
    const observer = new ResizeObserver(drawAll);
    panels.forEach(({ canvas }) => observer.observe(canvas));
    figure.dataset.drawn = String(count);
  }

  document.querySelectorAll("figure.map").forEach(setUp);
})();
