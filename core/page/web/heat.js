// Heat maps: a strip of cells for each row, a column for each rank or thread.

// Columns that no longer fit are put together; a cell then tells the largest of its values.
function binned(columns, rows, most) {
  const size = Math.max(1, Math.ceil(columns.length / most));
  const bins = [];
  for (let begin = 0; begin < columns.length; begin += size) {
    const end = Math.min(begin + size, columns.length);
    const name =
      end - begin > 1 ? `${columns[begin].name} to ${columns[end - 1].name}` : columns[begin].name;
    bins.push({begin, end, name, short: columns[begin].short, group: columns[begin].group});
  }
  const cells = rows
    .flatMap((row, y) =>
      bins.map((bin, x) => {
        let best = null;
        for (let c = bin.begin; c < bin.end; ++c) {
          const value = row.values[c];
          if (isNumber(value) && (best === null || row.strength(value) > row.strength(best)))
            best = value;
        }
        return best === null ? null : {x1: x, x2: x + 1, y, value: best, row, bin};
      }),
    )
    .filter(Boolean);
  return {bins, cells, size};
}

// Too strong a colour for letters of the usual one; grey is never.
const isDark = (cell) =>
  cell.row.kind(cell.value) !== "plain" && cell.row.strength(cell.value) > 0.75;

// rows: [{label, values[column], strength(value) 0..1, kind(value), text(value)}]; columns: [{name, short, group}].
function heat(label, columns, rows, {axis, legend: key}) {
  return chart(
    label,
    (width) => {
      const {bins, cells, size} = binned(columns, rows, Math.max(8, Math.floor((width - 24) / 5)));
      const cell = (width - 24) / bins.length;
      const inset = cell > 12 ? 0.75 : 0;
      const widest = new Map();
      for (const c of cells)
        widest.set(c.row, Math.max(widest.get(c.row) || 0, c.row.text(c.value).length));
      const fits = (row) => cell >= Math.max(widest.get(row) * LETTER + 4, 36);
      const edges = bins
        .map((bin, x) => x)
        .filter((x) => x > 0 && bins[x].group !== bins[x - 1].group);
      const every = Math.ceil(
        (Math.max(...bins.map((bin) => bin.short.length)) * LETTER * 1.3) / cell,
      );
      const ticks = bins.map((bin, x) => x).filter((x) => x % every === 0);
      return Plot.plot({
        width,
        height: 38 * rows.length + 40,
        marginLeft: 10,
        marginRight: 14,
        marginTop: 4,
        marginBottom: 36,
        style: STYLE,
        x: {domain: [0, bins.length]},
        y: {type: "band", domain: rows.map((row, y) => y), axis: null, padding: 0},
        marks: [
          Plot.barX(rows, {
            x1: 0,
            x2: bins.length,
            y: (row, y) => y,
            insetTop: 17,
            insetBottom: 3,
            fill: "var(--empty)",
          }),
          Plot.barX(cells, {
            x1: "x1",
            x2: "x2",
            y: "y",
            insetTop: 17,
            insetBottom: 3,
            insetLeft: inset,
            insetRight: inset,
            fill: (c) => `var(--${c.row.kind(c.value)})`,
            fillOpacity: (c) => 0.06 + 0.94 * c.row.strength(c.value),
          }),
          edges.length * 12 < width
            ? Plot.ruleX(edges, {stroke: "var(--panel)", strokeWidth: 3})
            : null,
          Plot.text(
            cells.filter((c) => fits(c.row)),
            {
              x: (c) => c.x1 + 0.5,
              y: "y",
              dy: 7,
              text: (c) => c.row.text(c.value),
              fill: (c) => (isDark(c) ? "var(--panel)" : "var(--text)"),
            },
          ),
          Plot.text(rows, {
            x: 0,
            y: (row, y) => y,
            dy: -11,
            textAnchor: "start",
            fill: "var(--text)",
            text: (row) => shorten(row.label, Math.floor((width - 24) / LETTER)),
          }),
          Plot.axisX(
            ticks.map((x) => x + 0.5),
            {
              tickFormat: (x) => bins[Math.floor(x)].short,
              tickSize: 0,
              fill: "var(--quiet)",
              label: size > 1 ? `${axis}, ${size} in each column: the strongest` : axis,
              labelAnchor: "left",
              labelArrow: "none",
            },
          ),
          Plot.tip(
            cells,
            Plot.pointer({
              x: (c) => c.x1 + 0.5,
              y: "y",
              maxRadius: 60,
              title: (c) => `${c.row.label}\n${c.bin.name}: ${c.row.text(c.value)}`,
            }),
          ),
        ],
      });
    },
    key,
  );
}
