// Call paths, where figures come from, and the request itself.
section("paths", "Call paths", ["sampled"], () => {
  const stacks = list(report.stacks).filter((one) => list(one.frames).length > 0);
  if (stacks.length === 0) return null;
  // By CPU time: a sample does not stand for the same time on every node. Where no time is known, by samples.
  const timed = stacks.some((one) => one.seconds > 0);
  const merged = new Map();
  let all = 0;
  for (const one of stacks) {
    const key = one.frames.join("\n");
    const known = merged.get(key) || {frames: one.frames, samples: 0, weight: 0};
    const weight = timed ? one.seconds || 0 : one.samples;
    known.samples += one.samples;
    known.weight += weight;
    all += weight;
    merged.set(key, known);
  }
  const heavy = [...merged.values()].sort((a, b) => b.weight - a.weight);
  return cut(heavy, 25, "call paths", (some) =>
    table(
      [
        {head: "samples", number: true, cell: (one) => count(one.samples)},
        {head: "share", number: true, cell: (one) => percent(one.weight / all)},
        {
          head: "path, outermost first",
          cell: (one) => h("code", null, one.frames.map(clean).join(" › ")),
        },
      ],
      some,
      "call paths",
    ),
  );
});

const FIGURES = [
  [
    "shares of loops, functions, ranks and threads; imbalance",
    () => loops.length > 0 && (report.provenance || "sampled"),
    "CPU time that the samples of a place stand for; intervals are 95\u00a0%, by clusters of rank and window",
  ],
  [
    "saturations",
    () =>
      verdicts.some((loop) => list(loop.variants).length > 0) &&
      (verdicts[0].provenance || "shadow"),
    "time of a variant as a part of the time of the loop, runs side by side in one copy of the job; medians, 95\u00a0% intervals",
  ],
  [
    "verdicts and data levels",
    () => verdicts.some((loop) => loop.bound !== "unknown") && "shadow",
    "from the saturations of LS, FP and DL1",
  ],
  [
    "gains",
    () =>
      verdicts.some((loop) => list(loop.gains).length > 0) &&
      (verdicts[0].gain_provenance || "estimated"),
    "share of the slowest rank × (1 − saturation)",
  ],
  [
    "how near a copy comes to the job",
    () => verdicts.some((loop) => loop.fidelity && loop.fidelity.value > 0) && "live",
    "the loop timed in both",
  ],
  [
    "stops and pauses",
    () => ((report.injection || {}).cost || {}).stops > 0 && "live",
    "timed as they happen",
  ],
  [
    "later faults, pass-through, sampling, added wall time",
    () => report.overhead && "estimated",
    "counts × costs measured beforehand; upper bounds",
  ],
];

// The page is made from a part of very large reports.
function leftOut() {
  const parts = Object.entries(report.left_out || {})
    .filter(([, number]) => number > 0)
    .map(([what, number]) => `${count(number)} ${what}`);
  return (
    parts.length > 0 &&
    h(
      "p",
      {class: "left-out"},
      `Too much for one page, and not in it: ${parts.join(", ")}. The report as JSON has all.`,
    )
  );
}

section("sources", "Where the figures come from", [], () => {
  const rows = FIGURES.map(([figure, from, how]) => ({figure, from: from(), how})).filter(
    (row) => row.from,
  );
  const nodes = list(report.nodes);
  if (rows.length + nodes.length === 0) return null;
  return [
    rows.length > 0 &&
      table(
        [
          {head: "figure", cell: (r) => r.figure},
          {head: "source", cell: (r) => source(r.from)},
          {head: "how", cell: (r) => r.how},
        ],
        rows,
        "sources",
      ),
    nodes.length > 0 && [
      h("h3", null, "Sampling on each node"),
      cut(nodes, 100, "nodes", (some) =>
        table(
          [
            {head: "node", cell: (n) => n.node},
            {head: "event", cell: (n) => n.event},
            {head: "per second", number: true, cell: (n) => count(n.frequency_hz)},
            {
              head: "how",
              cell: (n) =>
                `${clean(n.method)}, ${n.kernel_included ? "user and kernel" : "user only"}`,
            },
            {head: "time", number: true, cell: (n) => time(n.covered_ns)},
            {head: "windows", number: true, cell: (n) => count(n.windows)},
            {head: "source", cell: (n) => source(n.provenance)},
          ],
          some,
          "sampling",
        ),
      ),
    ],
    leftOut(),
    status.spec ? more("The request (job.yaml)", h("pre", null, status.spec)) : null,
  ];
});
