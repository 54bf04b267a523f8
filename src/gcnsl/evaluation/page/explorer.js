// The neighbourhood explorer: a node in the middle, its given neighbours on the left, its learned ones on the right.
const page = JSON.parse(document.getElementById("data").textContent);
const nodes = page.nodes.map(([name, known, truth, predicted, probability, use], place) => (
  { place, name, known, truth, predicted, probability, use, view: page.views[place] }
));
const explored = nodes.filter((node) => node.view);
const [about, stage, hint, why] = ["about", "stage", "hint", "why"].map((id) => document.getElementById(id));
const USES = ["not known to training", "known to training", "used for validation"];
let current = null;

const classOf = (node) => (node.known < 0 ? node.predicted : node.known);
const isWrong = (node) => node.truth >= 0 && node.truth !== node.predicted;
const percent = (share) => (share < 0.005 ? "< 1%" : share > 0.995 ? "> 99%" : `${Math.round(100 * share)}%`);
const shortened = (text, length) => (text.length > length ? `${text.slice(0, Math.max(1, length - 1))}…` : text);

function drawn(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function chip(number) {
  const made = element("span", undefined, "chip");
  const dot = element("i");
  dot.style.setProperty("--class", page.colours[number]);
  made.append(dot, element("span", page.classes[number]));
  made.title = page.classes[number];
  return made;
}

// One sentence about a node, for its tooltip and for the line below the picture.
function described(node, similarity, reasons) {
  const parts = [`predicted ${page.classes[node.predicted]} (${percent(node.probability)})`];
  if (node.truth >= 0) parts.push(`its class is ${page.classes[node.truth]}, ${USES[node.use]}`);
  if (similarity !== null && similarity !== undefined) parts.push(`similarity ${similarity}`);
  if (reasons) parts.push(reasons);
  return `${node.name}: ${parts.join("; ")}${node.view ? "" : "; it can't be explored on this page"}`;
}

function dotOf(node, x, y, radius) {
  const group = drawn("g", { transform: `translate(${x} ${y})` });
  group.style.setProperty("--class", page.colours[classOf(node)]);
  group.append(drawn("circle", { class: node.known < 0 ? "dot" : "dot known", r: radius }));
  if (isWrong(node)) {
    const arm = radius * 0.45;
    group.append(drawn("path", { class: "cross", d: `M${-arm} ${-arm}L${arm} ${arm}M${arm} ${-arm}L${-arm} ${arm}` }));
  }
  return group;
}

function neighbourOf(entry, side, { x, y, room }) {
  const [place, similarity, arrows, , reasons] = entry;
  const node = nodes[place];
  const text = described(node, similarity, reasons);
  const group = dotOf(node, x, y, 9);
  const label = drawn("text", { x: side * 16, y: 4, "text-anchor": side < 0 ? "end" : "start" });
  label.append(shortened(node.name, Math.floor(room / 8) - (arrows ? arrows.length + 1 : 0)));
  if (arrows) label.append(drawn("tspan", { class: "arrows", dx: 5 }, arrows));
  const area = { class: "area", x: side < 0 ? -room - 16 : -13, y: -14, width: room + 29, height: 28 }; // easy to hit
  group.prepend(drawn("rect", area));
  group.append(label, drawn("title", {}, text));
  group.setAttribute("class", node.view ? "neighbour" : "neighbour unexplored");
  group.setAttribute("role", "button");
  group.setAttribute("tabindex", "0");
  group.setAttribute("aria-label", text);
  if (!node.view) group.setAttribute("aria-disabled", "true");
  Object.assign(group.dataset, { node: place, side });
  for (const kind of ["focus", "pointerenter"]) group.addEventListener(kind, () => { hint.textContent = text; });
  return group;
}

// Given neighbours are on the left and learned ones on the right; without a learned graph, given ones are on both sides.
function sidesOf({ given, learned, crowded }) {
  const told = ({ count, nodes: shown }) => (count > shown.length ? `${shown.length} of ${count} shown` : count ? "" : "none");
  const left = { side: -1, title: learned ? "Given graph A" : "Neighbours", words: told(given), kind: "given", entries: given.nodes };
  if (!learned) {
    const half = Math.ceil(given.nodes.length / 2);
    const right = { side: 1, title: "", words: "", kind: "given", entries: given.nodes.slice(half) };
    return [{ ...left, entries: given.nodes.slice(0, half) }, right];
  }
  const words = crowded ? `${learned.count}: too many to tell anything` : told(learned);
  return [left, { side: 1, title: "Learned graph A*", words, kind: "learned", entries: learned.nodes }];
}

// A heading at the outer edge of a side, and below it how many neighbours are shown.
function headingOf(side, title, words, width) {
  const place = { x: side < 0 ? 4 : width - 4, "text-anchor": side < 0 ? "start" : "end" };
  return [drawn("text", { class: "side", y: 18, ...place }, title), drawn("text", { class: "few", y: 36, ...place }, words)];
}

function draw(node) {
  const width = Math.max(300, stage.clientWidth);
  const sides = sidesOf(node.view);
  const rows = Math.max(3, ...sides.map(({ entries }) => entries.length));
  const [gap, top] = [30, 52];
  const height = top + rows * gap + 24;
  const [cx, cy] = [width / 2, top + (rows * gap) / 2];
  const reach = Math.min(width * 0.24, 210);
  const [headings, edges, dots] = [drawn("g", {}), drawn("g", {}), drawn("g", {})];
  for (const { side, title, words, kind, entries } of sides) {
    headings.append(...headingOf(side, title, words, width));
    entries.forEach((entry, index) => {
      const y = cy + (index - (entries.length - 1) / 2) * gap;
      const x = cx + side * reach * Math.sqrt(1 - 0.55 * ((y - cy) / (cy - top + gap)) ** 2); // on an ellipse
      const bend = (x - cx) * 0.55;
      const curve = `M${cx} ${cy}C${cx + bend} ${cy} ${x - bend * 0.9} ${y} ${x} ${y}`;
      edges.append(drawn("path", { class: `edge ${entry[3] ? "both" : kind}`, d: curve }));
      dots.append(neighbourOf(entry, side, { x, y, room: width / 2 - Math.abs(x - cx) - 20 }));
    });
  }
  const centre = dotOf(node, cx, cy, 17);
  centre.append(drawn("text", { class: "centre", y: 36, "text-anchor": "middle" }, shortened(node.name, Math.floor(reach / 7.5))));
  const label = `Neighbours of ${node.name}`;
  stage.replaceChildren(drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, headings, edges, dots, centre));
}

// Numbers with a sign as bars to both sides of a middle line.
function signedBars(title, lines) {
  const list = element("dl", undefined, "signed");
  const most = Math.max(...lines.map(([, value]) => Math.abs(value)), 1e-9);
  for (const [name, value] of lines) {
    const line = element("div");
    const bar = element("dd", `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(2)}`, value < 0 ? "against" : "for");
    bar.style.setProperty("--share", Math.abs(value) / most);
    line.append(element("dt", name), bar);
    list.append(line);
  }
  const box = element("div");
  box.append(element("h3", title), list);
  return box;
}

function tell(node) {
  const head = element("h3", node.name, "name");
  const verdict = element("p");
  verdict.append("Predicted ", chip(node.predicted), ` with a probability of ${percent(node.probability)}. `);
  if (node.truth < 0) verdict.append("Its class is not known.");
  else {
    verdict.append("Its class is ", chip(node.truth), `, ${USES[node.use]}. `);
    if (isWrong(node)) verdict.append(element("strong", "A mistake.", "bad"));
  }
  about.replaceChildren(head, verdict);
}

function tellWhy(node) {
  const { view } = node;
  const against = `for ${page.classes[node.predicted]}${view.rival === node.predicted ? "" : ` against ${page.classes[view.rival]}`}`;
  const boxes = element("div", undefined, "boxes");
  const likely = element("div");
  likely.append(element("h3", "Likeliest classes"));
  for (const [number, probability] of view.likely) {
    const line = element("div", undefined, "likely");
    line.style.setProperty("--share", probability);
    line.append(chip(number), element("span", percent(probability)));
    likely.append(line);
  }
  boxes.append(likely);
  const telling = view.contributions.filter(([, , share]) => share !== 0);
  if (telling.length) {
    const lines = telling.map(([name, value, share]) => [value ? `${name}: ${value}` : name, share]);
    boxes.append(signedBars(`What speaks ${against}, in log-odds`, lines));
  }
  if (view.evidence.length) boxes.append(signedBars(`By branch of the network, ${against}`, view.evidence));
  const effects = view.given.nodes.filter((entry) => entry[5] !== null && entry[5] !== 0);
  if (effects.length) {
    const ranked = effects.toSorted((a, b) => Math.abs(b[5]) - Math.abs(a[5])).slice(0, 8);
    boxes.append(signedBars(`What its edges add ${against}`, ranked.map((entry) => [nodes[entry[0]].name, entry[5]])));
  }
  const sentences = element("ul", undefined, "findings");
  if (view.alone) {
    const without = element("li", "Without its edges: ");
    without.append(chip(view.alone[0]), ` (${percent(view.alone[1])}).`);
    sentences.append(without);
  }
  sentences.append(element("li", `${view.learned ? "Given graph A: " : ""}${view.given.summary}.`));
  if (view.learned) sentences.append(element("li", `Learned graph A*: ${view.learned.summary}.`));
  const reasons = (view.learned?.nodes ?? []).filter((entry) => entry[4]);
  why.replaceChildren(boxes, element("h3", "Its neighbours"), sentences);
  if (reasons.length) {
    const list = element("ul", undefined, "reasons");
    for (const [place, similarity, , , words] of reasons) {
      const line = element("li");
      line.append(element("b", nodes[place].name), chip(classOf(nodes[place])));
      line.append(element("span", `similarity ${similarity}`, "muted"), element("span", words));
      list.append(line);
    }
    why.append(element("h3", "Why the learned graph joins them"), list);
  }
}

function legend(node) {
  const shown = [...node.view.given.nodes, ...(node.view.learned?.nodes ?? [])].map(([place]) => classOf(nodes[place]));
  const lines = [...new Set([node.predicted, classOf(node), ...shown])].map((number) => {
    const line = element("li");
    line.append(chip(number));
    return line;
  });
  document.getElementById("class-legend").replaceChildren(...lines);
}

function show(node) {
  current = node;
  document.getElementById("explorer").classList.toggle("no-learned", !node.view.learned);
  tell(node);
  draw(node);
  legend(node);
  tellWhy(node);
  hint.textContent = "";
}

// The address names the node, so that the browser's Back returns to the one before.
function go(place) {
  location.hash = `node=${encodeURIComponent(nodes[place].name)}`;
  showAddressed();
}

function showAddressed() {
  const name = location.hash.startsWith("#node=") ? decodeURIComponent(location.hash.slice(6)) : null;
  const node = explored.find((one) => one.name === name);
  if (node && node !== current) show(node);
}

// Searching: names that begin with the text come first.
const [find, found] = [document.getElementById("find"), document.getElementById("found")];
let active = -1;

function suggest() {
  const text = find.value.trim().toLowerCase();
  const matching = explored.filter((node) => node.name.toLowerCase().includes(text));
  const begins = (node) => Number(!node.name.toLowerCase().startsWith(text));
  matching.sort((a, b) => begins(a) - begins(b));
  found.replaceChildren(...matching.slice(0, 8).map((node, index) => {
    const option = element("li");
    option.append(chip(classOf(node)), element("span", node.name, "name"));
    option.setAttribute("role", "option");
    option.id = `option-${index}`;
    option.dataset.node = node.place;
    return option;
  }));
  if (!matching.length) found.append(element("li", "No explored node has this name.", "muted"));
  activate(-1);
  found.hidden = false;
  find.setAttribute("aria-expanded", "true");
}

function activate(index) {
  const options = Array.from(found.querySelectorAll("[role=option]"));
  active = Math.max(-1, Math.min(index, options.length - 1));
  options.forEach((option, number) => option.setAttribute("aria-selected", String(number === active)));
  if (active >= 0) find.setAttribute("aria-activedescendant", `option-${active}`);
  else find.removeAttribute("aria-activedescendant");
}

function choose(option) {
  if (option) {
    find.value = "";
    go(Number(option.dataset.node));
  }
  found.hidden = true;
  find.setAttribute("aria-expanded", "false");
}

find.addEventListener("input", suggest);
find.addEventListener("focus", suggest);
find.addEventListener("blur", () => choose(null));
found.addEventListener("pointerdown", (event) => {
  event.preventDefault(); // the field keeps the focus
  choose(event.target.closest("[role=option]"));
});
find.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (found.hidden) suggest();
    activate(active + (event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Enter") choose(found.querySelectorAll("[role=option]")[Math.max(active, 0)]);
  else if (event.key === "Escape") choose(null);
  else return;
  event.preventDefault();
});

// Moving among the neighbours with the arrow keys, and on to one with Enter.
stage.addEventListener("keydown", (event) => {
  const here = event.target.closest(".neighbour");
  if (!here) return;
  const on = (side) => Array.from(stage.querySelectorAll(`.neighbour[data-side="${side}"]`));
  const own = on(here.dataset.side);
  const index = own.indexOf(here);
  const moves = { ArrowDown: own[index + 1], ArrowUp: own[index - 1], ArrowLeft: on(-1)[index] ?? on(-1).at(-1), ArrowRight: on(1)[index] ?? on(1).at(-1) };
  if (event.key in moves) moves[event.key]?.focus();
  else if (event.key === "Enter" || event.key === " ") here.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  else return;
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.matches("input, select")) {
    event.preventDefault();
    find.focus();
  }
});

document.addEventListener("click", (event) => {
  const target = event.target.closest(".neighbour, .mistakes button[data-node]");
  if (!target || !nodes[target.dataset.node].view) return;
  go(Number(target.dataset.node));
  if (target.matches("button")) {
    document.getElementById("explorer").scrollIntoView();
    document.getElementById("explorer-title").focus({ preventScroll: true });
  }
});

document.getElementById("random").addEventListener("click", () => go(explored[Math.floor(Math.random() * explored.length)].place));
document.getElementById("next-mistake")?.addEventListener("click", () => {
  go(page.mistakes[(page.mistakes.indexOf(current.place) + 1) % page.mistakes.length]);
});
window.addEventListener("hashchange", showAddressed);
new ResizeObserver(() => current && draw(current)).observe(stage);
show(nodes[page.first]);
showAddressed();
