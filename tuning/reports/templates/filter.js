"use strict";
// Shows of each filtered table the rows that have every chosen value, and says how many they are.
(() => {
  for (const filters of document.querySelectorAll(".filters")) {
    const chosen = [...filters.querySelectorAll("select")];
    const rows = [...filters.nextElementSibling.querySelectorAll("tbody tr")];
    const fits = (row) => chosen.every(({ selectedIndex, value, dataset }) => !selectedIndex || row.cells[dataset.place].textContent === value);
    filters.addEventListener("change", () => {
      rows.forEach((row) => { row.hidden = !fits(row); });
      filters.querySelector("output").value = `${rows.filter(fits).length} of ${rows.length}`;
    });
  }
})();
