// A threshold on the probability of one class: a slider, what it finds, and its point on the curve.
const decided = JSON.parse(document.getElementById("curves").textContent);
const [slider, positiveList] = ["slider", "positive"].map((id) => document.getElementById(id));
const shareText = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)}%` : "–");

// Wilson's interval for a share of nodes, in brackets.
function wilsonText(part, whole) {
  if (!whole) return "";
  const [share, square] = [part / whole, 1.96 ** 2 / whole];
  const half = 1.96 * Math.sqrt((share * (1 - share)) / whole + square / (4 * whole));
  const ends = [-1, 1].map((sign) => Math.round((100 * (share + square / 2 + sign * half)) / (1 + square)));
  return `(${Math.max(0, ends[0])}–${Math.min(100, ends[1])})`;
}

function showThreshold() {
  const chosen = Number(positiveList.value);
  const { points, positives } = decided.curves[chosen];
  const [value, alerts, hits] = points[points.length - 1 - Number(slider.value)];
  const [name, rest] = [positiveList.selectedOptions[0].textContent, decided.nodes - positives];
  const text = Number(value.toPrecision(4)).toString();
  document.getElementById("threshold-value").textContent = text;
  slider.setAttribute("aria-valuetext", `${text}: ${alerts} alerts, ${hits} of ${positives} found`);
  const cards = [
    [alerts.toLocaleString("en"), `alerts among ${decided.nodes.toLocaleString("en")} nodes`],
    [shareText(hits, alerts), `precision: alerts that are right ${wilsonText(hits, alerts)}`],
    [shareText(hits, positives), `recall: found of ${positives.toLocaleString("en")} ${wilsonText(hits, positives)}`],
    [alerts + positives ? ((2 * hits) / (alerts + positives)).toFixed(3) : "–", "F1"],
  ];
  document.getElementById("found-cards").replaceChildren(...cards.map(([strong, words]) => {
    const card = element("div", undefined, "card");
    card.append(element("strong", strong), element("span", words));
    return card;
  }));
  const table = document.getElementById("at-threshold");
  const head = element("tr");
  head.append(...["true class", "alert", "no alert"].map((words) => element("th", words)));
  const rows = [[name, hits, positives - hits], ["all others", alerts - hits, rest - (alerts - hits)]].map(([of, ...counts]) => {
    const line = element("tr");
    line.append(element("th", of), ...counts.map((count) => {
      const share = count / Math.max(1, counts[0] + counts[1]);
      const cell = element("td", count.toLocaleString("en"), share > 0.55 ? "dark" : "");
      cell.style.setProperty("--share", share);
      return cell;
    }));
    return line;
  });
  const [top, body] = [element("thead"), element("tbody")];
  top.append(head);
  body.append(...rows);
  table.replaceChildren(top, body);
  const quoted = `'${name.replaceAll("'", "'\\''")}'`;
  document.getElementById("threshold-command").textContent = `gcnsl predict MODEL --threshold ${text} --positive ${quoted}`;
  drawCurve(points, positives, [value, alerts, hits]);
}

// Recall to the right, precision upwards; the dot is the threshold.
function drawCurve(points, positives, [, alerts, hits]) {
  const svg = document.getElementById("curve");
  const place = (recall, precision) => [54 + 266 * recall, 256 - 240 * precision];
  const marks = [0, 25, 50, 75, 100].flatMap((tick) => [
    drawn("line", { class: "grid", x1: 44, x2: 330, y1: 256 - 2.4 * tick, y2: 256 - 2.4 * tick }),
    drawn("text", { x: 38, y: 260 - 2.4 * tick, "text-anchor": "end" }, String(tick)),
    drawn("text", { x: 54 + 2.66 * tick, y: 274, "text-anchor": "middle" }, String(tick)),
  ]);
  marks.push(drawn("text", { x: 187, y: 294, "text-anchor": "middle" }, "recall, in percent"));
  marks.push(drawn("text", { transform: "translate(12 136) rotate(-90)", "text-anchor": "middle" }, "precision, in percent"));
  if (positives) {
    const line = points.map(([, all, right], index) => `${index ? "L" : "M"}${place(right / positives, all ? right / all : 1).map((v) => v.toFixed(1)).join(" ")}`);
    marks.push(drawn("path", { class: "line", d: line.join("") }));
    if (alerts) {
      const [cx, cy] = place(hits / positives, hits / alerts);
      marks.push(drawn("circle", { cx, cy, r: 7 }));
    }
  }
  svg.setAttribute("aria-label", `Precision and recall for every threshold; at this one ${shareText(hits, alerts)} and ${shareText(hits, positives)}`);
  svg.replaceChildren(...marks);
}

// The point of the threshold that is in use, or that of a probability of one half.
function showClass() {
  const chosen = Number(positiveList.value);
  const { points } = decided.curves[chosen];
  const wanted = decided.value !== null && chosen === decided.positive ? decided.value : 0.5;
  slider.max = points.length - 1;
  slider.value = points.length - 1 - points.findLastIndex(([value], index) => index === 0 || value >= wanted);
  showThreshold();
}

slider.addEventListener("input", showThreshold);
positiveList.addEventListener("change", showClass);
showClass();
