// Accesses to memory: where loads were found, how long they took, place by place and rank by rank.
const memory = report.memory || null;
const memoryPlaces = list(memory && memory.places);

const LEVELS = {
  l1: "L1",
  fill_buffer: "fill buffer",
  l2: "L2",
  l3: "L3",
  l4: "L4",
  other_cache: "another core's cache",
  remote_cache: "another node's cache",
  local_dram: "local DRAM",
  remote_dram: "another node's DRAM",
  dram: "DRAM",
  persistent: "persistent memory",
  cxl: "CXL memory",
  io: "I/O memory",
  uncached: "uncached memory",
  unknown: "not told",
};
const BORDERS = {
  l1: "beyond L1",
  l2: "beyond L2",
  l3: "beyond L3",
  node: "on another node",
};
const WHY_NO_SHARE = {
  too_few: "too few loads tell",
  not_told: "most of the time is of loads that do not tell",
  no_latency: "loads that were found there have no latency",
};

const beyondAt = (figures, border) =>
  list(figures.beyond).find((one) => one.border === border) || {};
const weightOf = (figures) => (figures.accesses || {}).weight || 0;
const walksOf = (accesses) => {
  if (!list(accesses.dtlb).some((one) => one.result !== "unknown")) return null; // none tells
  const walks = list(accesses.dtlb).find((one) => one.result === "walk");
  return accesses.weight > 0 ? (walks ? walks.weight : 0) / accesses.weight : null;
};
const beyondText = (one) =>
  isNumber(one.share)
    ? `${percent(one.share)} ${percents(one.share_low, one.share_high)}`
    : WHY_NO_SHARE[one.why_not] || "–";
const cycles = (latency) =>
  !latency || !(latency.low > 0)
    ? "–"
    : latency.high === null
      ? `${count(latency.low)} and more`
      : latency.high - latency.low > 1
        ? `${count(latency.low)}–${count(latency.high - 1)}`
        : count(latency.low);
const memoryName = (one) =>
  numberById.has(one.id) ? loopName(one.id) : clean(one.function || "?");

// Loads by level, nearest first: the further away, the stronger the colour.
function levelBar(accesses) {
  const found = new Map(list(accesses.loads).map((one) => [one.level, one.weight]));
  const all = [...found.values()].reduce((sum, weight) => sum + weight, 0);
  if (!(all > 0)) return null;
  const known = Object.keys(LEVELS).filter((level) => found.get(level) > 0);
  const told = known.filter((level) => level !== "unknown");
  const colour = (level) =>
    level === "unknown"
      ? ["unknown", ""]
      : ["memory", `;opacity:${((told.indexOf(level) + 1) / told.length).toFixed(2)}`];
  const text = (level) => `${LEVELS[level]} ${percent(found.get(level) / all)}`;
  return [
    h(
      "div",
      {class: "stack", role: "img", "aria-label": known.map(text).join(", ")},
      known.map((level) => {
        const [kind, style] = colour(level);
        const grow = ((found.get(level) / all) * 1000).toFixed(2);
        return h("i", {class: `key-${kind}`, style: `flex-grow:${grow}${style}`});
      }),
    ),
    h(
      "p",
      {class: "legend"},
      known.map((level) => {
        const [kind, style] = colour(level);
        return h(
          "span",
          null,
          h("i", {class: `key key-${kind}`, style: style.slice(1)}),
          text(level),
        );
      }),
    ),
  ];
}

// The part of the time of loads that was spent beyond each border.
function borderBars(figures, label) {
  const rows = list(figures.beyond)
    .filter((one) => isNumber(one.share) || one.samples > 0)
    .map((one) => ({
      label: BORDERS[one.border] || clean(one.border),
      figure: beyondText(one),
      value: isNumber(one.share) ? one.share : 0,
      low: one.share_low,
      high: one.share_high,
      kind: "memory",
      note: `${count(one.samples)} loads tell, ${count(one.untold)} do not`,
    }));
  if (rows.length === 0) return null;
  return bars(label, rows, {
    domain: [0, 1],
    format: (x) => `${Math.round(x * 100)} %`,
    legend: legend(["memory", "of the time of loads"], ["interval", "95 % interval"]),
  });
}

// How many accesses took how long; a bar from the shortest to the longest of its latencies.
function latencyHistogram(accesses, label) {
  const buckets = list((accesses.latency || {}).histogram)
    .filter((one) => one.samples > 0 && one.low > 0)
    .map((one) => ({...one, end: one.high === null ? one.low * 2 : one.high}));
  if (buckets.length === 0) return null;
  return chart(
    label,
    (width) =>
      Plot.plot({
        width,
        height: 190,
        marginLeft: 44,
        marginRight: 14,
        marginTop: 8,
        marginBottom: 36,
        style: STYLE,
        x: {
          type: "log",
          base: 2,
          domain: [buckets[0].low, buckets[buckets.length - 1].end],
        },
        y: {domain: [0, Math.max(...buckets.map((one) => one.samples))]},
        marks: [
          Plot.gridY({ticks: 4, stroke: "var(--line)", strokeOpacity: 1}),
          Plot.axisY({ticks: 4, tickSize: 0, label: null, fill: "var(--quiet)"}),
          Plot.axisX({
            ticks: width < 500 ? 4 : 8,
            tickFormat: (x) => count(x),
            tickSize: 0,
            fill: "var(--quiet)",
            label: "cycles that an access took",
            labelAnchor: "left",
            labelArrow: "none",
          }),
          Plot.rectY(buckets, {
            x1: "low",
            x2: "end",
            y1: 0,
            y2: "samples",
            insetLeft: 0.5,
            insetRight: 0.5,
            fill: "var(--memory)",
          }),
          Plot.tip(
            buckets,
            Plot.pointer({
              x: (one) => Math.sqrt(one.low * one.end),
              y: "samples",
              maxRadius: 60,
              title: (one) => `${cycles(one)} cycles\n${plural(one.samples, "access", "accesses")}`,
            }),
          ),
        ],
      }),
    null,
  );
}

// Time beyond L2 of each place on each rank, where the rank's own loads tell it.
function memoryHeat() {
  const places = memoryPlaces.slice(0, 12);
  const known = new Map();
  for (const one of places.flatMap((at) => list(at.ranks)))
    known.set(`${keyOfRank(one)}|${one.pid}`, one);
  if (known.size < 2) return null;
  const columns = [...known.entries()]
    .map(([key, one]) => ({
      key,
      rank: one.rank,
      node: one.node,
      name: `${rankName(one.rank, one.node)}, pid ${one.pid}`,
      short: clean(one.rank),
      group: one.node,
    }))
    .sort(order);
  const index = new Map(columns.map((column, at) => [column.key, at]));
  const rows = places
    .map((at) => {
      const values = columns.map(() => null);
      for (const one of list(at.ranks))
        if (isNumber(one.beyond_l2))
          values[index.get(`${keyOfRank(one)}|${one.pid}`)] = one.beyond_l2;
      return {
        label: memoryName(at),
        values,
        strength: (v) => v,
        kind: () => "memory",
        text: (v) => percent(v, 0),
      };
    })
    .filter((row) => row.values.some(isNumber));
  if (rows.length === 0) return null;
  return [
    h("h3", null, "Time of loads beyond L2 on each rank"),
    heat("Time of loads beyond L2, by rank", columns, rows, {
      axis: "rank",
      legend: legend(["memory", "all of it"], ["weak", "none, or not told"]),
    }),
  ];
}

function instructionTable(one) {
  if (list(one.references).length === 0) return null;
  const all = weightOf(one);
  return cut(one.references, 100, "instructions", (some) =>
    table(
      [
        {head: "instruction", cell: (r) => h("code", null, r.instruction)},
        {head: "samples", number: true, cell: (r) => count((r.accesses || {}).samples)},
        {head: "share", number: true, cell: (r) => percent(weightOf(r) / all)},
        {head: "time beyond L2", cell: (r) => beyondText(beyondAt(r, "l2"))},
        {head: "walks", number: true, cell: (r) => percent(walksOf(r.accesses || {}))},
        {head: "median cycles", number: true, cell: (r) => cycles((r.accesses || {}).latency)},
      ],
      some,
      "instructions",
    ),
  );
}

function memoryPlace(one) {
  const accesses = one.accesses || {};
  return more(
    `${memoryName(one)}${where(one) ? ` · ${where(one)}` : ""}: ${plural(accesses.samples, "access", "accesses")}`,
    levelBar(accesses),
    borderBars(one, `Time of loads of ${memoryName(one)} beyond each border`),
    latencyHistogram(accesses, `How long accesses of ${memoryName(one)} took`),
    instructionTable(one),
    one.references_left_out > 0 &&
      h(
        "p",
        {class: "quiet"},
        `… and ${plural(one.references_left_out, "more instruction", "more instructions")}.`,
      ),
  );
}

function memoryRemarks() {
  const hidden = list(memory.events)
    .filter((event) => event.latency_threshold > 3)
    .map(
      (event) =>
        `Loads that took fewer than ${count(event.latency_threshold)} cycles were not sampled (${clean(event.name)}).`,
    );
  const lost = memory.lost || {};
  const without = ["place", "instruction", "rank"]
    .filter((what) => lost[`without_${what}`] > 0)
    .map(
      (what) =>
        `${plural(lost[`without_${what}`], "access is", "accesses are")} in the job's figures, and of no ${what}.`,
    );
  const none =
    lost.accesses > 0
      ? [`${plural(lost.accesses, "access is", "accesses are")} in no figure: there was no room.`]
      : [];
  const further =
    memory.places_left_out > 0
      ? [`${plural(memory.places_left_out, "further place")} left out.`]
      : [];
  const several =
    list(memory.events).length > 1
      ? ["Shares add up samples of several events, each by its period."]
      : [];
  const all = [...hidden, ...several, ...none, ...without, ...further];
  return all.length > 0 ? h("p", {class: "quiet"}, all.join(" ")) : null;
}

section("memory", "Accesses to memory", ["sampled"], () => {
  if (memory === null || !((memory.accesses || {}).samples > 0)) return null;
  const all = weightOf(memory);
  return [
    h(
      "p",
      {class: "quiet"},
      `${plural(memory.accesses.samples, "sampled access", "sampled accesses")}. `,
      "The time of a load is its latency times the loads that the sample stands for; shares have their 95 % interval, ",
      "and are missing where samples cannot tell them.",
    ),
    h("h3", null, "Where loads were found"),
    levelBar(memory.accesses) || h("p", null, "No load tells."),
    h("h3", null, "Their time beyond each border"),
    borderBars(memory, "Time of loads of the job beyond each border") ||
      h("p", null, "No load tells."),
    h("h3", null, "How long accesses took"),
    latencyHistogram(memory.accesses, "How long accesses of the job took") ||
      h("p", null, "No access tells."),
    memoryPlaces.length > 0 && h("h3", null, "Place by place"),
    memoryPlaces.length > 0 &&
      cut(memoryPlaces, 40, "places", (some) => [
        table(
          [
            {head: "place", cell: (one) => h("span", {class: "name"}, memoryName(one))},
            {head: "where", cell: where},
            {head: "samples", number: true, cell: (one) => count((one.accesses || {}).samples)},
            {head: "share", number: true, cell: (one) => percent(weightOf(one) / all)},
            {head: "time beyond L2", cell: (one) => beyondText(beyondAt(one, "l2"))},
            {head: "walks", number: true, cell: (one) => percent(walksOf(one.accesses || {}))},
            {
              head: "median cycles",
              number: true,
              cell: (one) => cycles((one.accesses || {}).latency),
            },
          ],
          some,
          "places",
        ),
        some.slice(0, 12).map(memoryPlace),
      ]),
    memoryHeat(),
    memoryRemarks(),
  ];
});
