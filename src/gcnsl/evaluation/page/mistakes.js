// Long tables begin with some rows; a button below shows all. Sorted or filtered, the first of what is left are shown.
const longTables = Array.from(document.querySelectorAll("table[data-shown]"));

function showRows(table) {
  const rows = Array.from(table.tBodies[0].rows).filter((row) => !row.dataset.filtered);
  for (const row of table.tBodies[0].rows) row.hidden = Boolean(row.dataset.filtered);
  if (table.dataset.shown) rows.slice(Number(table.dataset.shown)).forEach((row) => { row.hidden = true; });
  if (!table.showAll) return;
  table.showAll.hidden = !table.dataset.shown || rows.length <= Number(table.dataset.shown);
  table.showAll.textContent = `Show all ${rows.length.toLocaleString("en")} rows`;
}

for (const table of longTables) {
  table.showAll = element("button", "", "show-all");
  table.showAll.type = "button";
  table.parentElement.after(table.showAll);
  table.showAll.addEventListener("click", () => {
    const next = table.tBodies[0].rows[Number(table.dataset.shown)];
    delete table.dataset.shown;
    showRows(table);
    next.querySelector("button, td, th").focus();
  });
  showRows(table);
}
document.addEventListener("click", (event) => {
  if (event.target.closest("thead th > button")) longTables.forEach(showRows); // they are sorted by now
});

// The list of mistakes: shown by true and by predicted class, chosen in two lists or by a number of the matrix.
const filters = { truth: document.getElementById("filter-truth"), predicted: document.getElementById("filter-predicted") };

function filterMistakes() {
  const rows = Array.from(document.querySelectorAll(".mistakes tbody tr"));
  const chosen = Object.entries(filters).filter(([, list]) => list.value !== "");
  for (const row of rows) row.dataset.filtered = chosen.every(([which, list]) => row.dataset[which] === list.value) ? "" : "1";
  showRows(document.querySelector(".mistakes"));
  const shown = rows.filter((row) => !row.dataset.filtered).length;
  document.getElementById("filtered").textContent = chosen.length ? `${shown} of ${rows.length} mistakes are such` : "";
}

if (filters.truth) {
  for (const list of Object.values(filters)) list.addEventListener("change", filterMistakes);
  document.addEventListener("click", (event) => {
    const cell = event.target.closest(".heat button");
    if (!cell) return;
    for (const [which, list] of Object.entries(filters)) list.value = cell.dataset[which];
    filterMistakes();
    document.getElementById("mistakes").scrollIntoView();
    filters.truth.focus({ preventScroll: true });
  });
}
