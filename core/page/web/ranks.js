// Ranks and threads against each other: seconds of each rank, and heat maps of loops.
const keyOfRank = (one) => `${one.node}|${one.rank}`;
const order = (a, b) => a.rank - b.rank || (a.node < b.node ? -1 : a.node > b.node ? 1 : 0);

function rankColumns() {
  const known = new Map();
  for (const one of [...ranks, ...loops.flatMap((row) => list(row.ranks))])
    if (!known.has(keyOfRank(one)))
      known.set(keyOfRank(one), {rank: one.rank, node: one.node, key: keyOfRank(one)});
  return [...known.values()].sort(order).map((one) => ({
    ...one,
    name: rankName(one.rank, one.node),
    short: clean(one.rank),
    group: one.node,
  }));
}

function threadColumns() {
  const known = new Map();
  for (const row of loops) {
    const each = new Map(
      list(row.ranks)
        .filter((r) => r.samples > 0)
        .map((r) => [keyOfRank(r), r.seconds / r.samples]),
    );
    for (const t of list(row.threads)) {
      const key = `${keyOfRank(t)}|${t.pid}|${t.tid}`;
      if (!known.has(key))
        known.set(key, {rank: t.rank, node: t.node, pid: t.pid, tid: t.tid, key});
      t.key = key;
      t.seconds = t.samples * (each.get(keyOfRank(t)) || 0);
    }
  }
  const all = [...known.values()].sort((a, b) => order(a, b) || a.pid - b.pid || a.tid - b.tid);
  const alone = new Set(all.map(keyOfRank)).size === 1;
  let last = "";
  let number = 0;
  return all.map((one) => {
    number = keyOfRank(one) === last ? number + 1 : 0;
    last = keyOfRank(one);
    return {
      ...one,
      name: `thread ${number} (tid ${one.tid}) of ${rankName(one.rank, one.node)}`,
      short: alone ? `${number}` : `${one.rank}.${number}`,
      group: last,
    };
  });
}

// parts(row): [{key, share, seconds}]. Either shares of each one's own time, or seconds against the mean of the loop.
function loopHeat(columns, parts, against, axis) {
  const index = new Map(columns.map((column, at) => [column.key, at]));
  const heavy = loops.filter((row) => shown(row) >= 0.002).slice(0, 12);
  const most = Math.max(0.01, ...heavy.flatMap((row) => parts(row).map((part) => part.share || 0)));
  const rows = heavy.map((row) => {
    const values = columns.map(() => (against ? 0 : null));
    for (const part of parts(row))
      if (index.has(part.key)) values[index.get(part.key)] = against ? part.seconds : part.share;
    if (!against)
      return {
        label: loopName(row.id),
        values,
        strength: (v) => v / most,
        kind: () => "sampled",
        text: (v) => percent(v, 0),
      };
    const mean = values.reduce((sum, v) => sum + v, 0) / values.length;
    return {
      label: `${loopName(row.id)}  mean ${seconds(mean)}`,
      values: values.map((v) => (mean > 0 ? v / mean : null)),
      strength: (v) => Math.min(Math.abs(v - 1), 1),
      kind: (v) => (v > 1 ? "arithmetic" : "memory"),
      text: (v) => `${v.toFixed(2)} ×`,
    };
  });
  const key = against
    ? legend(["arithmetic", "longer than the mean"], ["memory", "shorter"])
    : legend(["sampled", `${percent(most, 0)} of its time`], ["weak", "none of its time"]);
  return heat(
    against
      ? `Seconds of each loop against their mean, by ${axis}`
      : `Share of each loop in the time, by ${axis}`,
    columns,
    rows,
    {axis, legend: key},
  );
}

function twoViews(title, columns, parts, axis) {
  const views = [
    ["share of own time", false],
    ["against the mean of the loop", true],
  ];
  const holder = h("div", null, loopHeat(columns, parts, false, axis));
  const buttons = views.map(([name, against], at) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": at === 0 ? "true" : "false",
        onclick: () => {
          buttons.forEach((button, which) =>
            button.setAttribute("aria-pressed", which === at ? "true" : "false"),
          );
          holder.replaceChildren(loopHeat(columns, parts, against, axis));
        },
      },
      name,
    ),
  );
  return [h("h3", null, title), h("p", {class: "choice", role: "group"}, buttons), holder];
}

function rankSeconds(columns) {
  const most = Math.max(...ranks.map((one) => one.seconds || 0));
  if (!(most > 0)) return null;
  const of = new Map(ranks.map((one) => [keyOfRank(one), one]));
  const rows = [
    ["computing", "compute_seconds", "sampled"],
    ["all CPU time", "seconds", "sampled"],
  ].map(([label, field, kind]) => ({
    label: `${label}, of at most ${seconds(most)}`,
    values: columns.map((column) => (of.get(column.key) || {})[field]),
    strength: (value) => value / most,
    kind: () => kind,
    text: seconds,
  }));
  return [
    h("h3", null, "CPU time of each rank"),
    heat("CPU time of each rank", columns, rows, {axis: "rank"}),
  ];
}

section("ranks", "Ranks and threads", ["sampled"], () => {
  const columns = rankColumns();
  const threads = threadColumns();
  if (ranks.length === 0 || loops.length === 0 || (columns.length < 2 && threads.length < 2))
    return null;
  return [
    columns.length > 1 && rankSeconds(columns),
    columns.length > 1 &&
      twoViews(
        "Loops on each rank",
        columns,
        (row) =>
          list(row.ranks).map((r) => ({
            key: keyOfRank(r),
            share: r.share_of_rank,
            seconds: r.seconds,
          })),
        "rank",
      ),
    threads.length > columns.length &&
      twoViews(
        "Loops on each thread",
        threads,
        (row) =>
          list(row.threads).map((t) => ({
            key: t.key,
            share: t.share_of_thread,
            seconds: t.seconds,
          })),
        columns.length > 1 ? "rank.thread" : "thread",
      ),
    more(
      "Ranks as a table",
      cut(ranks, 200, "ranks", (some) =>
        table(
          [
            {head: "rank", number: true, cell: (r) => r.rank},
            {head: "node", cell: (r) => r.node},
            {head: "pid", number: true, cell: (r) => r.pid},
            {head: "CPU", number: true, cell: (r) => seconds(r.seconds)},
            {head: "computing", number: true, cell: (r) => seconds(r.compute_seconds)},
            {head: "samples", number: true, cell: (r) => count(r.samples)},
            {head: "threads", number: true, cell: (r) => count(r.threads)},
            {head: "", cell: (r) => (r.ended_early ? "ended early" : "")},
          ],
          some,
          "ranks",
        ),
      ),
    ),
  ];
});
