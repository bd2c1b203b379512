// Charts with Observable Plot: redrawn at the width they get, so that they are as sharp on a phone as on paper.
const PAPER = 680; // CSS pixels between the margins of A4 and Letter
const LETTER = 6.9; // the widest of the common letters at the size of chart text
const charts = [];

// draw(width) -> svg. The chart follows the width of its place; what is closed is drawn when it opens.
function chart(label, draw, legend) {
  const box = h("div", {class: "plot", role: "img", "aria-label": label});
  let drawn = 0;
  const redraw = (width) => {
    if (width < 1 || width === drawn) return;
    drawn = width;
    box.replaceChildren(draw(width));
  };
  const fit = () => redraw(Math.floor(box.clientWidth));
  new ResizeObserver(fit).observe(box);
  charts.push({print: () => redraw(PAPER), fit});
  return h("figure", null, legend, box);
}

function printing() {
  for (const details of document.querySelectorAll("details[data-print]")) details.open = true;
  for (const one of charts) one.print();
}
addEventListener("beforeprint", printing);
addEventListener("afterprint", () => charts.forEach((one) => one.fit()));

const STYLE =
  "--plot-background: var(--panel); color: var(--text); font: 12px system-ui, sans-serif; overflow: visible";

const legend = (...entries) =>
  h(
    "figcaption",
    {class: "legend"},
    entries.map(([kind, text]) => h("span", null, h("i", {class: `key key-${kind}`}), text)),
  );

// Rows of a label, a figure at its right end, and below them a bar with the interval of its value.
// rows: [{label, figure, value, low, high, kind, from, to, note}]; from..to: a paler span behind the bar.
function bars(label, rows, {domain, mark, format, legend: key}) {
  const data = rows.map((row, index) => ({...row, index}));
  return chart(
    label,
    (width) => {
      const letters = (row) => Math.floor((width - row.figure.length * LETTER - 36) / LETTER);
      const spans = data.filter((row) => isNumber(row.from) && row.to > row.from);
      const intervals = data.filter((row) => isNumber(row.low) && row.high > row.low);
      return Plot.plot({
        width,
        height: 36 * data.length + 30,
        marginLeft: 10,
        marginRight: 14,
        marginTop: 4,
        marginBottom: 26,
        style: STYLE,
        x: {domain, clamp: true},
        y: {type: "band", domain: data.map((row) => row.index), axis: null, padding: 0},
        marks: [
          Plot.gridX({ticks: width < 500 ? 4 : 8, stroke: "var(--line)", strokeOpacity: 1}),
          Plot.axisX({
            ticks: width < 500 ? 4 : 8,
            tickFormat: format,
            tickSize: 0,
            label: null,
            fill: "var(--quiet)",
          }),
          Plot.barX(data, {
            x1: domain[0],
            x2: "value",
            y: "index",
            insetTop: 18,
            insetBottom: 4,
            rx: 2,
            fill: (row) => `var(--${row.kind || "plain"})`,
          }),
          Plot.barX(spans, {
            x1: "from",
            x2: "to",
            y: "index",
            insetTop: 15,
            insetBottom: 18,
            fill: "var(--quiet)",
          }),
          Plot.ruleY(intervals, {
            x1: "low",
            x2: "high",
            y: "index",
            dy: 7,
            stroke: "var(--text)",
            strokeWidth: 1.5,
          }),
          ["low", "high"].map((end) =>
            Plot.tickX(
              intervals.filter((row) => row[end] <= domain[1]),
              {
                x: end,
                y: "index",
                insetTop: 22,
                insetBottom: 8,
                stroke: "var(--text)",
                strokeWidth: 1.5,
              },
            ),
          ),
          mark === undefined
            ? null
            : Plot.tickX(data, {
                x: () => mark,
                y: "index",
                insetTop: 18,
                insetBottom: 2,
                stroke: "var(--text)",
                strokeWidth: 1.5,
                strokeDasharray: "3,2",
              }),
          Plot.text(data, {
            x: domain[0],
            y: "index",
            dy: -10,
            textAnchor: "start",
            fill: "var(--text)",
            stroke: "var(--panel)",
            text: (row) => shorten(row.label, letters(row)),
          }),
          Plot.text(data, {
            frameAnchor: "right",
            y: "index",
            dy: -10,
            fill: "var(--text)",
            stroke: "var(--panel)",
            text: "figure",
            fontVariant: "tabular-nums",
          }),
          Plot.tip(
            data,
            Plot.pointer({
              x: "value",
              y: "index",
              maxRadius: 60,
              title: (row) => [row.label, row.figure, row.note].filter(Boolean).join("\n"),
            }),
          ),
        ],
      });
    },
    key,
  );
}
