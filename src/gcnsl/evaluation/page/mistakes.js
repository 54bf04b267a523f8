// The list of mistakes: shown by true and by predicted class, chosen in two lists or by a number of the matrix.
const filters = { truth: document.getElementById("filter-truth"), predicted: document.getElementById("filter-predicted") };

function filterMistakes() {
  const rows = Array.from(document.querySelectorAll(".mistakes tbody tr"));
  const chosen = Object.entries(filters).filter(([, list]) => list.value !== "");
  for (const row of rows) row.hidden = !chosen.every(([which, list]) => row.dataset[which] === list.value);
  const shown = rows.filter((row) => !row.hidden).length;
  document.getElementById("filtered").textContent = chosen.length ? `${shown} of ${rows.length} are shown` : "";
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
