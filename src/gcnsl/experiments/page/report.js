const data = JSON.parse(document.getElementById("data").textContent);

// The runs behind a number.
const dialog = document.getElementById("behind");

function tableOf(headings, lines, className) {
  const table = element("table", undefined, className);
  const head = table.createTHead().insertRow();
  for (const heading of headings) {
    const cell = element("th", heading);
    cell.scope = "col";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const line of lines) {
    const row = body.insertRow();
    line.forEach((text, index) => {
      const cell = element(index === 0 ? "th" : "td", text);
      if (index === 0) cell.scope = "row";
      row.append(cell);
    });
  }
  const scroll = element("div", undefined, "scroll");
  scroll.append(table);
  return scroll;
}

function optionsOf(options) {
  const list = element("dl", undefined, "options");
  for (const [name, value] of Object.entries(options)) {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value === null ? "none" : String(value)));
    list.append(pair);
  }
  return list;
}

function show(number) {
  const cell = data.cells[number];
  document.getElementById("behind-title").textContent = cell.title;
  const body = dialog.querySelector(".dialog-body");
  body.replaceChildren(element("p", cell.text), element("h3", "Hyper-parameters"), optionsOf(data.groups[cell.group]));
  body.append(element("h3", "Runs"));
  const [first, seed, ...others] = data.columns;
  const lines = cell.runs.map(([value, number]) => {
    const [run, drawn, ...rest] = data.runs[number];
    return [run, drawn, value, ...rest];
  });
  body.append(tableOf([first, seed, cell.metric, ...others], lines));
  if (cell.failed.length) {
    body.append(element("h3", "Failed"), tableOf(["run", "error"], cell.failed, "texts"));
  }
  body.querySelectorAll(".scroll").forEach(hintToScroll);
  dialog.showModal();
  body.scrollTop = 0;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (event.target === dialog || (button && button.classList.contains("close"))) dialog.close();
  else if (button && button.dataset.cell !== undefined) show(Number(button.dataset.cell));
});
