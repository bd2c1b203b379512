// What the profile cost the job, and whether every sample is accounted for.
function costLine(loop) {
  const c = loop.cost || {};
  if (!c.stops && !c.shadows && !c.recoveries) return null;
  return h(
    "p",
    {class: "quiet"},
    `Cost over all ranks: ${plural(c.stops, "stop")} ${time(c.stop_ns)} (longest ${time(c.longest_stop_ns)}), `,
    `${plural(c.shadows, "shadow")} ${time(c.pause_ns)} (longest ${time(c.longest_pause_ns)})`,
    c.recoveries > 0
      ? `, ${count(c.recoveries)} copies in the ranks themselves ${time(c.recovery_ns)}`
      : "",
    ".",
  );
}

function budgetRatio() {
  const found = /^\s*overhead:\s*"?([0-9.]+)\s*%/m.exec(status.spec || "");
  return found ? Number(found[1]) / 100 : null;
}

function wallBars() {
  const wall = report.added_wall || {};
  const injected = report.injection || {};
  const ratio = isNumber(wall.ratio) && wall.ratio > 0 ? wall.ratio : injected.added_ratio;
  const budget = budgetRatio();
  if (!isNumber(ratio)) return null;
  const total = wall.total_ns || injected.added_wall_ns;
  const part = (ns) => (total > 0 && isNumber(ns) ? (ratio * ns) / total : 0);
  const rows = [
    {
      label: "together, at most",
      value: ratio,
      kind: budget !== null && ratio > budget ? "bad" : "plain",
      figure: `${percent(ratio, 2)}  ${time(total)}`,
    },
    ...[
      ["stops and shadows", wall.injection_ns, "shadow"],
      ["sampling (estimated)", wall.sampling_ns, "sampled"],
      ["agents on the job's cores (estimated)", wall.agents_ns, "estimated"],
    ]
      .filter(([, ns]) => isNumber(ns))
      .map(([label, ns, kind]) => ({
        label,
        value: part(ns),
        kind,
        figure: `${percent(part(ns), 2)}  ${time(ns)}`,
      })),
  ];
  const most = Math.max(ratio, budget || 0, 0.001) * 1.05;
  return bars("Wall time added to the job", rows, {
    domain: [0, most],
    mark: budget === null ? undefined : budget,
    format: (x) => `${+(x * 100).toFixed(2)} %`,
    legend:
      budget === null ? null : legend(["mark", `the budget of the request, ${percent(budget)}`]),
  });
}

function costTable() {
  const c = (report.injection || {}).cost || {};
  const o = report.overhead || {};
  const rows = [
    c.stops > 0 && [
      "stops of ranks",
      count(c.stops),
      time(c.stop_ns),
      time(c.longest_stop_ns),
      "live",
    ],
    c.shadows > 0 && [
      "pauses for shadows",
      count(c.shadows),
      time(c.pause_ns),
      time(c.longest_pause_ns),
      "live",
    ],
    c.shadow_cpu_ns > 0 && [
      "CPU time of shadows (counted to the job's children)",
      "",
      time(c.shadow_cpu_ns),
      "",
      "live",
    ],
    c.failed_arms > 0 && ["times a team did not meet", count(c.failed_arms), "", "", "live"],
    c.recoveries > 0 && [
      "copies run in the ranks",
      count(c.recoveries),
      time(c.recovery_ns),
      "",
      "live",
    ],
    c.later_fault_ns > 0 && [
      "first writes after a fork",
      "",
      time(c.later_fault_ns),
      "",
      "estimated",
    ],
    c.pass_through_ns > 0 && [
      "entries of prepared loops",
      "",
      time(c.pass_through_ns),
      "",
      "estimated",
    ],
    o.kernel_sampling_ns > 0 && [
      "sampling in the kernel",
      "",
      time(o.kernel_sampling_ns),
      "",
      "estimated",
    ],
    o.agent_cpu_ns > 0 && ["CPU time of the agents", "", time(o.agent_cpu_ns), "", "live"],
    o.lost_to_agent_ns > 0 && [
      "lost to the agents, at most",
      "",
      time(o.lost_to_agent_ns),
      "",
      "estimated",
    ],
    o.job_cpu_ns > 0 && ["CPU time of the job", "", time(o.job_cpu_ns), "", "live"],
  ].filter(Boolean);
  if (rows.length === 0) return null;
  return [
    h("h3", null, "Summed over ranks"),
    table(
      [
        {head: "what", cell: (r) => r[0]},
        {head: "how many", number: true, cell: (r) => r[1]},
        {head: "together", number: true, cell: (r) => r[2]},
        {head: "longest", number: true, cell: (r) => r[3]},
        {head: "source", cell: (r) => source(r[4])},
      ],
      rows,
      "cost",
    ),
  ];
}

function accounting() {
  const a = report.accounting || {};
  if (!(a.seen > 0 || a.lost > 0)) return null;
  const dropped = Object.entries(a.dropped || {})
    .filter(([, number]) => number > 0)
    .map(([reason, number]) => `${spaced(reason)} ${count(number)}`);
  const whole = a.seen === a.kept + a.dropped_total;
  return [
    h("h3", null, "Samples"),
    h(
      "p",
      null,
      `${count(a.seen)} seen = ${count(a.kept)} kept + ${count(a.dropped_total)} dropped`,
      dropped.length > 0 ? ` (${dropped.join(", ")})` : "",
      `; ${count(a.lost)} lost in the kernel; ${percent(report.missing_ratio)} missing.`,
      whole ? "" : " These counts do not add up: please report this.",
    ),
  ];
}

section("cost", "What the profile cost", ["live", "estimated"], () => {
  const parts = [wallBars(), costTable(), accounting()].filter(Boolean);
  return parts.length === 0 ? null : parts;
});
