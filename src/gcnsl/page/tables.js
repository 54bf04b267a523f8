"use strict";

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Sorting: a button in each heading. Numbers begin with the largest, texts with the first; pressed again, the reverse.
function sortBy(heading) {
  const row = heading.parentElement;
  const body = heading.closest("table").tBodies[0];
  const value = (line) => line.cells[heading.cellIndex].dataset.value;
  const lines = Array.from(body.rows);
  const known = lines.filter((line) => value(line) !== "");
  const unknown = lines.filter((line) => value(line) === "");
  const areTexts = known.some((line) => Number.isNaN(Number(value(line))));
  const descending = areTexts ? heading.ariaSort === "ascending" : heading.ariaSort !== "descending";
  const compare = (a, b) => (areTexts ? a.localeCompare(b) : a - b);
  known.sort((a, b) => (descending ? -1 : 1) * compare(value(a), value(b)));
  body.append(...known, ...unknown);
  for (const other of row.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("thead th > button");
  if (button) sortBy(button.parentElement);
});

// What is wider than the page fades out on the right and says that there is more.
function showWhetherMore(area) {
  const hidden = area.scrollWidth - area.clientWidth;
  area.classList.toggle("more", hidden - area.scrollLeft > 1);
  area.previousElementSibling.hidden = hidden <= 1;
}
const sizes = new ResizeObserver((entries) => entries.forEach((entry) => showWhetherMore(entry.target)));

function hintToScroll(area) {
  area.before(element("p", "Scroll sideways for more →", "scroll-hint"));
  area.addEventListener("scroll", () => showWhetherMore(area));
  sizes.observe(area);
}
document.querySelectorAll(".scroll, .picture").forEach(hintToScroll);
