// What the profile could not say, and why.
const refusal = (one) => [
  one.variant ? `${clean(one.variant)}: ` : "",
  /^0x0*$/.test(one.instruction || "0x0") ? "" : [h("code", null, one.instruction), " "],
  one.reason,
  one.count > 1 ? ` (${count(one.count)} times)` : "",
];

function openOf(loop) {
  const lines = [];
  if (loop.state === "refused" || loop.state === "never_entered")
    lines.push([`${spaced(loop.state)}.`]);
  if (list(loop.open).length > 0)
    lines.push([`The budget did not reach ${loop.open.map(clean).join(", ")}.`]);
  if (loop.bound !== "unknown" && loop.sure === false)
    lines.push(["Its verdict is unsure: values within the intervals would give another one."]);
  if (loop.bound === "unknown" && loop.why) lines.push([`No verdict: ${clean(loop.why)}.`]);
  const reasons = new Map();
  for (const rank of list(loop.ranks))
    if (rank.state !== "measured" && rank.reason)
      reasons.set(rank.reason, [...(reasons.get(rank.reason) || []), rank.rank]);
  for (const [reason, of] of reasons)
    lines.push([
      `${of.length > 8 ? `${of.length} ranks` : `rank ${of.join(", ")}`}: `,
      reason,
      ".",
    ]);
  for (const rank of list(loop.ranks))
    if (rank.outlier)
      lines.push([`${rankName(rank.rank, rank.node)} differs: `, rank.outlier, "."]);
  if (loop.ranks_left_out > 0)
    lines.push([
      `${plural(loop.ranks_left_out, "rank")} that do not differ are not in this report.`,
    ]);
  const refused = list(loop.refusals);
  if (lines.length === 0 && refused.length === 0) return null;
  return h(
    "div",
    {class: "question"},
    h("h3", null, h("a", {href: `#${cardId(loop)}`}, loopName(loop.loop_id))),
    h(
      "ul",
      null,
      lines.map((line) => h("li", null, line)),
    ),
    refused.length > 0 &&
      more(
        `${plural(refused.length, "reason")} why runs did not count or variants were refused`,
        cut(refused, 60, "reasons", (some) =>
          h(
            "ul",
            null,
            some.map((one) => h("li", null, refusal(one))),
          ),
        ),
      ),
  );
}

function openOfSamples() {
  const a = report.accounting || {};
  const lines = [];
  if (report.missing_ratio > 0)
    lines.push(
      `${percent(report.missing_ratio)} of the samples are missing: lost in the kernel ${count(a.lost)}, dropped ${count(a.dropped_total)}.`,
    );
  if (a.throttled > 0) lines.push(`The kernel throttled sampling ${plural(a.throttled, "time")}.`);
  if (a.late_threads > 0)
    lines.push(
      `${plural(a.late_threads, "thread")} ran before being seen: ${time(a.late_thread_cpu_ns)} of CPU time, and what those used that had ended by then.`,
    );
  if (a.stack_truncated > 0) lines.push(`${plural(a.stack_truncated, "call path")} ended early.`);
  if (a.stack_skipped > 0)
    lines.push(
      `${plural(a.stack_skipped, "sample")} ${a.stack_skipped === 1 ? "has" : "have"} no call path.`,
    );
  const early = ranks.filter((one) => one.ended_early);
  if (early.length > 0)
    lines.push(
      `Ended before the profile did: ${shorten(early.map((one) => rankName(one.rank, one.node)).join(", "), 300)}.`,
    );
  return lines.length === 0
    ? null
    : h(
        "div",
        {class: "question"},
        h("h3", null, "Samples"),
        h(
          "ul",
          null,
          lines.map((line) => h("li", null, line)),
        ),
      );
}

section("open", "Open questions", [], () => {
  const all = [
    ...(status.dry_run ? [] : verdicts.slice(0, 40).map(openOf)),
    openOfSamples(),
  ].filter(Boolean);
  return all.length === 0 ? null : all;
});

section("dry-run", "What would be altered", ["estimated"], () => {
  if (!status.dry_run || verdicts.length === 0) return null;
  return table(
    [
      {head: "loop", cell: (loop) => loopName(loop.loop_id)},
      {head: "share", number: true, cell: (loop) => percent(loop.share)},
      {head: "state", cell: (loop) => spaced(loop.state)},
      {
        head: "fork",
        number: true,
        cell: (loop) => (loop.predicted ? time(loop.predicted.fork_ns) : "–"),
      },
      {
        head: "later faults",
        number: true,
        cell: (loop) => (loop.predicted ? time(loop.predicted.later_fault_ns) : "–"),
      },
      {
        head: "runs, at most",
        number: true,
        cell: (loop) => (loop.predicted ? time(loop.predicted.most_run_ns) : "–"),
      },
      {
        head: "refused",
        cell: (loop) =>
          list(loop.refusals)
            .slice(0, 8)
            .map((one) => h("div", null, refusal(one))),
      },
    ],
    verdicts,
    "what would be altered",
  );
});
