// The head of the page: what was profiled, the answer in sentences, and figures to compare.
function headline() {
  const command = [...new Set(ranks.map((rank) => clean(rank.command)))].filter(Boolean);
  const nodes = new Set(ranks.map((rank) => rank.node));
  const what = command.length > 0 ? shorten(command.join(", "), 80) : clean(status.name || "a job");
  return ranks.length > 0
    ? `${what}: ${plural(ranks.length, "rank")} on ${plural(nodes.size, "node")}`
    : what;
}

function gainSentence() {
  if (status.dry_run) return "A dry run: nothing of the job was stopped, altered or copied.";
  const best = verdicts.find((loop) => list(loop.gains).length > 0);
  if (!best)
    return verdicts.length > 0 ? "No gain of a fix is known yet: see the open questions." : null;
  const gain = best.gains[0];
  const [begin, size] = [
    gain.of_job.value < 0.01
      ? "No fix of one loop would save much: at most "
      : "A fix of one loop would save up to ",
    `${percent(gain.of_job.value)} ${percents(gain.of_job.low, gain.of_job.high)}`,
  ];
  return [
    begin,
    h("strong", null, size),
    ` of the time of ${clean(best.slowest_rank || "the job")}: `,
    h("strong", null, gain.name),
    " in ",
    h("a", {href: `#${cardId(best)}`}, loopName(best.loop_id)),
    someRanks(gain) && ` (measured on ${someRanks(gain)})`,
    ".",
  ];
}

// " (return of memory 15.0 %, page faults 8.1 %)"; "" where no cause is known.
function kernelCauses(totals) {
  const parts = list(totals.kernel_causes)
    .filter((part) => part.cause !== "unknown")
    .map((part) => ({...part, shown: walled ? part.wall_share : part.share}))
    .filter((part) => part.shown >= 0.02)
    .slice(0, 3)
    .map((part) => `${CAUSES[part.cause] || clean(part.cause)} ${percent(part.shown)}`);
  return parts.length > 0 ? ` (${parts.join(", ")})` : "";
}

function timeSentence() {
  const totals = report.totals || {};
  if (!totals.loops) return null;
  const parts = [
    `${percent(walled ? totals.wall.loops : totals.loops.share)} of the ${walled ? "elapsed" : "CPU"} time is in ${plural(loops.length, "loop")}`,
  ];
  if (loops.length > 0)
    parts.push(`, ${percent(shown(loops[0]) + ((walled ? loops[0].wall_called_share : loops[0].called_share) || 0))} in the heaviest, ${loopName(loops[0].id)}`);
  if (walled && totals.wall.waiting_or_idle >= 0.03)
    parts.push(`; for ${percent(totals.wall.waiting_or_idle)} of it nothing computes`);
  if (!walled && totals.waiting_share >= 0.03)
    parts.push(
      `; ${percent(totals.waiting_share)} is spent waiting in MPI, OpenMP and other runtimes`,
    );
  const kernel = walled ? totals.wall.kernel : (totals.kernel || {}).share;
  if (kernel >= 0.1) parts.push(`; ${percent(kernel)} in the kernel${kernelCauses(totals)}`);
  return [parts, "."];
}

function rankSentence() {
  if (ranks.length < 2 || !report.worst_rank) return null;
  return report.imbalance >= 1.05
    ? `The ranks differ: ${clean(report.worst_rank)} computes ${two(report.imbalance)} times as long as the mean.`
    : `The ranks are even: the longest computes ${two(report.imbalance)} times as long as the mean.`;
}

function tiles() {
  const settled = verdicts.filter((loop) => loop.state === "measured").length;
  const wall = report.added_wall || {};
  const injected = report.injection || {};
  return h(
    "dl",
    {class: "tiles"},
    [
      ["samples", count(status.samples), "sampled"],
      verdicts.length > 0 &&
        !status.dry_run && ["hot loops settled", `${settled} of ${verdicts.length}`, "shadow"],
      ranks.length > 1 && ["imbalance", two(report.imbalance), "sampled"],
      isNumber(wall.ratio) && wall.ratio > 0
        ? ["added wall time, at most", percent(wall.ratio, 2), "estimated"]
        : isNumber(injected.added_ratio) && [
            "added by stops and shadows",
            percent(injected.added_ratio, 2),
            "estimated",
          ],
      ["samples missing", percent(report.missing_ratio), "sampled"],
    ]
      .filter(Boolean)
      .map(([name, figure, from]) =>
        h("div", null, h("dt", null, name), h("dd", null, figure, " ", source(from))),
      ),
  );
}

// A typed notice is said here, the others came as text.
function noticeText(one) {
  if (!one.launchers || one.launchers.disposition !== "left_out") return one.text;
  const waiting = list(one.launchers.waiting);
  const more = one.launchers.waiting_count - waiting.length;
  const names = waiting.map((process) => `${process.pid} (${process.command})`).join(", ");
  return `${names}${more > 0 ? ` and ${more} more` : ""}: only waiting for children, left out`;
}

function notices() {
  const order = {error: 0, warning: 1, info: 2};
  const all = [...list(status.notices)].sort(
    (a, b) => (order[a.severity] ?? 3) - (order[b.severity] ?? 3),
  );
  if (all.length === 0) return null;
  const line = (one) =>
    h(
      "li",
      {class: `notice notice-${one.severity in order ? one.severity : "info"}`},
      h("b", null, one.severity),
      ` ${[one.node, one.pid ? `pid ${one.pid}` : ""].filter(Boolean).join(", ")} `,
      noticeText(one),
    );
  return cut(all, 20, "notices", (some) => h("ul", {class: "notices"}, some.map(line)));
}

function overview() {
  const begun = status.started_unix_ns || status.submitted_unix_ns;
  const lasted =
    status.finished_unix_ns && begun ? `, ${time(status.finished_unix_ns - begun)}` : "";
  const ended = ENDS[status.end] ? `, until ${ENDS[status.end]}` : "";
  const who = status.requester
    ? `, asked for by ${clean(status.requester.name || status.requester.uid)}`
    : "";
  return h(
    "header",
    null,
    h(
      "p",
      {class: "quiet"},
      `perfd report ${clean(status.id || "")}`,
      status.name ? ` · ${clean(status.name)}` : "",
      " ",
      h(
        "span",
        {
          class: `state state-${/^[A-Z]+$/.test(status.state) ? status.state.toLowerCase() : "other"}`,
        },
        status.state || "?",
      ),
    ),
    h("h1", null, headline()),
    h("p", {class: "quiet"}, `${utc(begun)}${lasted}${ended}${who}`),
    [gainSentence(), timeSentence(), rankSentence()]
      .filter(Boolean)
      .map((text) => h("p", {class: "answer"}, text)),
    tiles(),
    notices(),
  );
}
