// Where the samples fell: kinds of code, loops with their intervals, and everything else.
const CATEGORIES = [
  ["loops", "loops"],
  ["outside_loops", "outside loops"],
  ["libraries", "libraries"],
  ["kernel", "kernel"],
  ["unknown", "unknown"],
];

// Who came into the kernel for that; rows are heaviest first.
const callersOf = (cause) =>
  list(report.functions)
    .filter((row) => row.category === "kernel" && row.kernel_cause === cause && row.kernel_caller)
    .slice(0, 3)
    .map((row) => `${clean(row.kernel_caller)}${row.file ? ` ${where(row)}` : ""}`)
    .join(", ");

// Nothing where no cause is known.
function kernelTable() {
  const causes = list((report.totals || {}).kernel_causes);
  if (!causes.some((part) => part.cause !== "unknown")) return null;
  return more(
    "Kernel time by cause",
    table(
      [
        {head: "cause", cell: (part) => CAUSES[part.cause] || clean(part.cause)},
        ...(walled
          ? [{head: "wall share", number: true, cell: (part) => percent(part.wall_share)}]
          : []),
        {head: walled ? "CPU share" : "share", number: true, cell: (part) => percent(part.share)},
        {head: "called by", cell: (part) => callersOf(part.cause)},
        {head: "samples", number: true, cell: (part) => count(part.samples)},
      ],
      causes,
      "causes of kernel time",
    ),
  );
}

function categoryBar() {
  const totals = report.totals || {};
  const parts = CATEGORIES.map(([key, name]) => ({
    key,
    name,
    ...(totals[key] || {share: 0, samples: 0}),
    ...(walled ? {share: totals.wall[key]} : {}),
  }));
  if (!parts.some((part) => part.samples > 0)) return null;
  if (walled)
    parts.push({key: "idle", name: "waiting or idle", share: totals.wall.waiting_or_idle});
  return [
    h(
      "div",
      {
        class: "stack",
        role: "img",
        "aria-label": parts.map((p) => `${p.name} ${percent(p.share)}`).join(", "),
      },
      parts
        .filter((p) => p.share > 0)
        .map((p) =>
          h("i", {class: `key-${p.key}`, style: `flex-grow:${(p.share * 1000).toFixed(2)}`}),
        ),
    ),
    legend(
      ...parts.map((p) => [
        p.key,
        `${p.name} ${percent(p.share)}` +
          (!walled && p.key === "libraries" && totals.waiting_share > 0
            ? ` (waiting ${percent(totals.waiting_share)})`
            : ""),
      ]),
    ),
  ];
}

const calledShare = (row) => (walled ? row.wall_called_share : row.called_share) || 0;
const called = list(report.loops).some((row) => calledShare(row) > 0);

const rowColumns = (numbered) => [
  ...(numbered
    ? [{head: "#", number: true, cell: (row) => `${numberById.get(row.id) || ""}`}]
    : []),
  {head: "function", cell: (row) => h("span", {class: "name"}, place(row))},
  {head: "where", cell: where},
  ...(walled ? [{head: "wall share", number: true, cell: (row) => percent(row.wall_share)}] : []),
  {head: walled ? "CPU share" : "share", number: true, cell: (row) => percent(row.share)},
  {head: "95 % interval", cell: (row) => percents(shownLow(row), shownHigh(row))},
  ...(numbered
    ? [
        {head: "with inner loops and calls", number: true, cell: (row) => percent(walled ? row.wall_inclusive_share : row.inclusive_share)},
        ...(called ? [{head: "of that called", number: true, cell: (row) => percent(calledShare(row))}] : []),
        {head: "hot", cell: (row) => (row.hot ? "hot" : "")},
        {head: "kind", cell: facts},
      ]
    : []),
  {head: "max / mean", number: true, cell: (row) => two(row.imbalance)},
  {head: "samples", number: true, cell: (row) => count(row.samples)},
];
const rowTable = (rows, name, numbered) =>
  cut(rows, 200, "rows", (some) => table(rowColumns(numbered), some, name));

section("time", "Where the time goes", ["sampled"], () => {
  if (loops.length + list(report.functions).length + list(report.waiting).length === 0) return null;
  const heavy = loops.filter((row) => shown(row) + calledShare(row) >= 0.002).slice(0, 12);
  const most = Math.max(0.1, ...heavy.map((row) => Math.max(shown(row), shownHigh(row) || 0)));
  return [
    categoryBar(),
    kernelTable(),
    heavy.length > 0
      ? bars(
          walled
            ? "Share of each loop in the elapsed time of the job"
            : "Share of each loop in the CPU time of the job",
          heavy.map((row) => ({
            label: `${loopName(row.id)}  ${where(row)}`,
            figure: percent(shown(row)),
            value: shown(row),
            low: shownLow(row),
            high: shownHigh(row),
            kind: row.hot ? "sampled" : "plain",
            note: `${percents(shownLow(row), shownHigh(row))}\n${percent(row.share)} of CPU time\n${facts(row)}\n${count(row.samples)} samples`,
          })),
          {
            domain: [0, Math.min(1, most * 1.02)],
            format: (x) => `${+(x * 100).toFixed(2)} %`,
            legend: legend(
              ["sampled", "hot loops"],
              ["plain", "other"],
              ["interval", "95 % interval"],
            ),
          },
        )
      : null,
    loops.length > 0 &&
      more(`All ${plural(loops.length, "loop")} as a table`, rowTable(loops, "loops", true)),
    list(report.functions).length > 0 &&
      more("Outside loops", rowTable(report.functions, "functions", false)),
    list(report.waiting).length > 0 &&
      more(
        "Waiting loops of MPI, OpenMP and other runtimes",
        rowTable(report.waiting, "waiting loops", false),
      ),
  ];
});
