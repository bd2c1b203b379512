// What a fix of each loop would save, largest first.
const KINDS = [
  ["memory", "waits for memory"],
  ["arithmetic", "waits for arithmetic"],
  ["balanced", "both alike"],
  ["unsaturated", "neither"],
  ["plain", "not known"],
];

function gainBars() {
  const found = verdicts.filter((loop) => list(loop.gains).length > 0);
  if (found.length === 0) return null;
  return cut(found, 30, "loops", (some) => {
    const rows = some.map((loop) => {
      const {of_job: gain, name} = loop.gains[0];
      return {
        label: [`${loopName(loop.loop_id)}: ${clean(name)}`, someRanks(loop.gains[0])]
          .filter(Boolean)
          .join(", "),
        figure: `${percent(gain.value)} ${percents(gain.low, gain.high)}`,
        value: gain.value,
        low: gain.low,
        high: gain.high,
        kind: boundKind(loop.bound),
        note: [
          `${boundText(loop)}; of the time of ${clean(loop.slowest_rank || "the job")}`,
          someRanks(loop.gains[0]) && `measured on ${someRanks(loop.gains[0])}`,
        ]
          .filter(Boolean)
          .join("; "),
      };
    });
    const used = KINDS.filter(([kind]) => rows.some((row) => row.kind === kind));
    const most = Math.max(0.1, ...rows.map((row) => Math.max(row.value, row.high || 0)));
    return bars("Gain of the best fix of each loop", rows, {
      domain: [0, Math.min(1, most * 1.02)],
      format: (x) => `${+(x * 100).toFixed(2)} %`,
      legend: legend(...used, ["interval", "95 % interval"]),
    });
  });
}

function gainTable() {
  const all = verdicts.flatMap((loop) => list(loop.gains).map((gain) => ({loop, gain})));
  if (all.length === 0) return null;
  return more(
    "All gains as a table",
    cut(all, 200, "gains", (some) =>
      table(
        [
          {head: "loop", cell: ({loop}) => loopName(loop.loop_id)},
          {head: "fix", cell: ({gain}) => gain.name},
          {head: "variant", cell: ({gain}) => gain.variant},
          {head: "gain", number: true, cell: ({gain}) => percent(gain.of_job.value)},
          {head: "95 % interval", cell: ({gain}) => percents(gain.of_job.low, gain.of_job.high)},
          {head: "measured on", cell: ({gain}) => someRanks(gain) || (gain.ranks ? plural(gain.ranks, "rank") : "–")},
          {head: "of the time of", cell: ({loop}) => loop.slowest_rank || "the job"},
        ],
        some,
        "gains",
      ),
    ),
  );
}

section("gains", "What a fix would save", ["estimated"], () => {
  if (verdicts.length === 0 || status.dry_run) return null;
  return [
    h(
      "p",
      {class: "quiet"},
      "The part of the slowest rank's time that a loop takes, times what its best variant saves of the loop. ",
      "An upper bound: a real fix seldom removes all of a cost.",
    ),
    gainBars() ||
      h("p", null, "None of the measured loops shows a gain, or nothing was measured yet."),
    gainTable(),
  ];
});
