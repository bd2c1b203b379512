// One card for each loop that was measured, or refused, or is still open.
const cardId = (loop) => `loop-${verdicts.indexOf(loop) + 1}`;

function tripClasses(loop) {
  const classes = list(loop.trip_classes);
  const rank = list(loop.ranks).find((one) => list(one.trip_deciles).length > 0);
  const deciles = rank ? rank.trip_deciles : [];
  const spread =
    deciles.length > 0 &&
    h(
      "p",
      {class: "quiet"},
      deciles[0] === deciles[deciles.length - 1]
        ? `Every instance makes ${count(deciles[0])} iterations (${rankName(rank.rank, rank.node)}).`
        : `Iterations of an instance: ${count(deciles[0])} to ${count(deciles[deciles.length - 1])}, half of them below ` +
            `${count(deciles[5])} (${rankName(rank.rank, rank.node)}).`,
    );
  if (classes.length === 0) return spread;
  const names = [
    ...new Set(
      classes.flatMap((one) =>
        list(one.figures)
          .filter(isShown)
          .map((f) => f.variant),
      ),
    ),
  ];
  const value = (one, name) => {
    const found = list(one.figures).find((f) => f.variant === name && f.valid_runs > 0);
    if (!found) return "–";
    return hasInterval(found) ? twos(found.saturation) : two(found.saturation.value);
  };
  return [
    spread,
    more(
      `Short and long instances apart${loop.trip_rank ? `, ${clean(loop.trip_rank)}` : ""}`,
      table(
        [
          {
            head: "iterations",
            number: true,
            cell: (c) =>
              c.shortest === c.longest
                ? count(c.longest)
                : `${count(c.shortest)}–${count(c.longest)}`,
          },
          {head: "instances", number: true, cell: (c) => count(c.instances)},
          {head: "time", number: true, cell: (c) => percent(c.time)},
          {head: "verdict", cell: boundText},
          ...names.map((name) => ({head: clean(name), number: true, cell: (c) => value(c, name)})),
        ],
        classes,
        "instances by their iterations",
      ),
    ),
  ];
}

function references(loop) {
  const rank = list(loop.ranks).find((one) => list(one.references).length > 0);
  if (!rank) return null;
  const span = (r) => bytes(Math.max(Number(BigInt(r.highest) - BigInt(r.lowest)), 0));
  return more(
    `Memory accesses of one instance, ${rankName(rank.rank, rank.node)}`,
    cut(rank.references, 100, "accesses", (some) =>
      table(
        [
          {head: "instruction", cell: (r) => h("code", null, r.instruction)},
          {head: "array", number: true, cell: (r) => (r.group >= 0 ? `${r.group}` : "–")},
          {
            head: "does",
            cell: (r) => [r.reads && "reads", r.writes && "writes"].filter(Boolean).join(", "),
          },
          {head: "bytes", number: true, cell: (r) => count(r.bytes)},
          {head: "from", cell: (r) => h("code", null, r.lowest)},
          {head: "over", number: true, cell: span},
          {head: "lines", cell: (r) => (r.shared ? "shared between threads" : "")},
        ],
        some,
        "memory accesses",
      ),
    ),
  );
}

function quality(loop) {
  const parts = [];
  if (loop.agreement) parts.push(clean(loop.agreement));
  if (loop.fidelity && loop.fidelity.value > 0)
    parts.push(
      `the copy takes ${twos(loop.fidelity)} of the live time (${fidelityOf(loop.fidelity, loop.protocol)})` +
        (loop.fidelity.why && Math.abs(loop.fidelity.value - 1) > 0.1
          ? `: ${clean(loop.fidelity.why)}`
          : ""),
    );
  if (loop.protocol === "recovery") parts.push("timed in the ranks themselves, not in shadows");
  if (loop.ranks_total > 0)
    parts.push(`${count(loop.ranks_measured)} of ${plural(loop.ranks_total, "rank")} measured`);
  return parts.length > 0 ? h("p", {class: "quiet"}, parts.join("; "), ".") : null;
}

// Why there are no figures.
function nothing(loop) {
  const reason = (
    list(loop.refusals).find((one) => !one.variant) ||
    list(loop.ranks).find((one) => one.reason) ||
    {}
  ).reason;
  return reason ? h("p", null, `Nothing was measured: ${clean(reason)}.`) : null;
}

function card(loop) {
  const row = rowById.get(loop.loop_id) || {};
  const shown = list(loop.variants).filter((v) => isShown(v) && v.ranks > 0);
  const known = BOUNDS[loop.bound];
  const gains = list(loop.gains);
  return h(
    "article",
    {class: "card", id: cardId(loop)},
    h("h3", null, loopName(loop.loop_id)),
    h(
      "p",
      {class: "quiet"},
      [where(row), row.loop ? facts(row) : "", `${percent(loop.share)} of the job's time`]
        .filter(Boolean)
        .join(" · "),
    ),
    h(
      "p",
      null,
      h(
        "span",
        {class: `chip chip-${boundKind(loop.bound)}`},
        loop.state === "measured" || loop.bound !== "unknown"
          ? boundText(loop)
          : spaced(loop.state),
      ),
      " ",
      loop.level && loop.level !== "unknown"
        ? h(
            "span",
            {class: "chip"},
            `data ${/^L\d/.test(loop.level) ? "in " : ""}${spaced(loop.level)}`,
          )
        : null,
      " ",
      shown.length > 0 && source(loop.protocol === "recovery" ? "live" : "shadow"),
      known ? ` ${known[1]}` : "",
    ),
    gains.length > 0 &&
      h(
        "ul",
        {class: "plainlist"},
        gains
          .slice(0, 4)
          .map((gain) =>
            h(
              "li",
              null,
              h("b", null, percent(gain.of_job.value)),
              ` ${percents(gain.of_job.low, gain.of_job.high)} ${clean(gain.name)}`,
              someRanks(gain) && `, measured on ${someRanks(gain)}`,
            ),
          ),
      ),
    shown.length > 0 ? saturationBars(shown) : nothing(loop),
    quality(loop),
    list(loop.remarks).length > 0 &&
      h(
        "ul",
        null,
        loop.remarks.map((text) => h("li", null, text)),
      ),
    ranksAndThreads(loop),
    rankTable(loop),
    figureTable(loop),
    tripClasses(loop),
    assembly(loop, loop === verdicts[0]),
    references(loop),
    costLine(loop),
  );
}

section("loops", "The hot loops, one by one", ["shadow"], () => {
  if (verdicts.length === 0 || status.dry_run) return null;
  return [
    h(
      "p",
      {class: "quiet"},
      "Copies of each loop that lack something ran in shadows of the job, on its own data. A short bar means: ",
      "without what the variant lacks, the loop takes only that part of its time.",
    ),
    cut(verdicts, 40, "loops", (some) => some.map(card)),
  ];
});
