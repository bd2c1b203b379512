// The saturations of one loop: as bars, by rank, by thread, as tables.
function saturationBars(figures) {
  const rows = figures.map((f) => {
    const s = f.saturation || {};
    return {
      label: [variantLabel(f.variant), someRanks(f)].filter(Boolean).join(", "),
      figure: hasInterval(f) ? twos(s) : two(s.value),
      value: s.value,
      low: hasInterval(f) ? s.low : undefined,
      high: hasInterval(f) ? s.high : undefined,
      kind: variantKind(f.variant),
      from: f.ranks > 1 ? f.rank_min : undefined,
      to: f.rank_max,
      note: [
        `base ${clean(f.base)}`,
        `${count(f.valid_runs)} runs in ${count(f.shadows)} instances`,
        f.invalid_runs ? `${f.invalid_runs} runs did not count` : "",
        f.ranks > 1 ? `ranks ${two(f.rank_min)} to ${two(f.rank_max)}` : "",
        someRanks(f) && `measured on ${someRanks(f)}`,
        f.pinned > 0 && f.pinned < f.accesses ? `pinned ${f.pinned} of ${f.accesses} accesses` : "",
      ]
        .filter(Boolean)
        .join("\n"),
    };
  });
  const most = Math.max(
    1.05,
    ...rows.flatMap((row) => [row.value || 0, row.high || 0, row.to || 0]),
  );
  const ranked = rows.some((row) => row.to > row.from);
  return bars("Time of each variant as a part of the time of the loop", rows, {
    domain: [0, Math.min(most, 2)],
    mark: 1,
    format: (x) => x.toFixed(1),
    legend: legend(
      ["mark", "the loop as it is"],
      ["interval", "95 % interval"],
      ...(ranked ? [["span", "smallest to largest rank"]] : []),
    ),
  });
}

// Saturation of each variant on each rank, or on each thread of each rank.
const saturationHeat = (loop, columns, find) => {
  const names = list(loop.variants)
    .filter(isShown)
    .map((v) => v.variant);
  const rows = names.map((name) => ({
    label: clean(name),
    values: columns.map((column) => find(column, name)),
    strength: (value) => Math.min(Math.max(1 - value, 0), 1),
    kind: () => variantKind(name),
    text: two,
  }));
  return rows.filter((row) => row.values.some(isNumber));
};

function ranksAndThreads(loop) {
  const figure = (rank, thread, name) => {
    const found = list(rank.figures).find(
      (f) => f.thread === thread && f.variant === name && f.valid_runs > 0,
    );
    return found && found.saturation ? found.saturation.value : null;
  };
  const measured = list(loop.ranks).filter((rank) => list(rank.figures).length > 0);
  const threads = measured.flatMap((rank) =>
    [...new Set(list(rank.figures).map((f) => f.thread))]
      .filter((thread) => thread !== "team")
      .sort((a, b) => a - b)
      .map((thread) => ({
        rank,
        thread,
        name: `thread ${thread} of ${rankName(rank.rank, rank.node)}`,
        short: measured.length > 1 ? `${rank.rank}.${thread}` : `${thread}`,
        group: rank,
      })),
  );
  const perRank = measured.map((rank) => ({
    rank,
    name: rankName(rank.rank, rank.node),
    short: clean(rank.rank),
    group: rank.node,
  }));
  const key = () => legend(["strong", "saves much"], ["weak", "saves little"]);
  const rows = saturationHeat(loop, perRank, (column, name) => figure(column.rank, "team", name));
  const fine = saturationHeat(loop, threads, (column, name) =>
    figure(column.rank, column.thread, name),
  );
  return [
    perRank.length > 1 &&
      rows.length > 0 && [
        h("h4", null, "On each rank"),
        heat("Saturation of each variant on each rank", perRank, rows, {
          axis: "rank",
          legend: key(),
        }),
      ],
    threads.length > measured.length &&
      fine.length > 0 &&
      more(
        "On each thread",
        heat("Saturation of each variant on each thread", threads, fine, {
          axis: measured.length > 1 ? "rank.thread" : "thread",
          legend: key(),
        }),
      ),
  ];
}

function figureTable(loop) {
  const all = list(loop.variants);
  if (all.length === 0) return null;
  return more(
    "All figures as a table",
    table(
      [
        {head: "variant", cell: (v) => v.variant},
        {head: "base", cell: (v) => v.base},
        {head: "saturation", number: true, cell: (v) => two((v.saturation || {}).value)},
        {
          head: "95 % interval",
          cell: (v) =>
            v.saturation && hasInterval(v) ? `[${two(v.saturation.low)}, ${two(v.saturation.high)}]` : "–",
        },
        {
          head: "ranks",
          cell: (v) =>
            v.ranks > 1
              ? `${two(v.rank_min)} (${clean(v.min_rank)}) to ${two(v.rank_max)} (${clean(v.max_rank)})`
              : count(v.ranks),
        },
        {head: "measured on", cell: (v) => someRanks(v) || (v.ranks ? plural(v.ranks, "rank") : "–")},
        {head: "runs", number: true, cell: (v) => count(v.valid_runs)},
        {head: "did not count", number: true, cell: (v) => count(v.invalid_runs)},
        {head: "instances", number: true, cell: (v) => count(v.shadows)},
        {head: "cycles", number: true, cell: (v) => count(v.cycles)},
        {head: "changed", number: true, cell: (v) => (v.kept > 0 ? `${v.changed} of ${v.changed + v.kept}` : count(v.changed))},
        {head: "pinned", cell: (v) => (v.pinned > 0 ? `${v.pinned} of ${v.accesses}` : "")},
      ],
      all,
      "figures",
    ),
  );
}

function rankTable(loop) {
  const all = list(loop.ranks);
  if (all.length < 2) return null;
  return more(
    "Ranks as a table",
    cut(all, 200, "ranks", (some) =>
      table(
        [
          {head: "rank", number: true, cell: (r) => r.rank},
          {head: "node", cell: (r) => r.node},
          {head: "pid", number: true, cell: (r) => r.pid},
          {head: "state", cell: (r) => spaced(r.state)},
          {head: "verdict", cell: (r) => boundText({...r, sure: true})},
          {head: "threads", number: true, cell: (r) => count(r.team)},
          {
            head: "copy / live",
            number: true,
            cell: (r) => (r.fidelity && r.fidelity.value > 0 ? twos(r.fidelity) : "–"),
          },
          {
            head: "protocol, runs and live instances",
            cell: (r) => (r.fidelity && r.fidelity.value > 0 ? fidelityOf(r.fidelity, r.protocol) : r.protocol),
          },
          {head: "differs, or why not", cell: (r) => r.outlier || r.reason},
        ],
        some,
        "ranks",
      ),
    ),
  );
}
