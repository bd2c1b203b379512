// The report and what several sections look up in it. Nothing here trusts that a key exists.
const report = JSON.parse(document.getElementById("report").textContent);
const status = report.status || {};
const loops = list(report.loops);
const verdicts = list(report.verdicts);
const ranks = list(report.ranks);

const rowById = new Map();
for (const row of [...list(report.functions), ...list(report.waiting), ...loops])
  rowById.set(row.id, row);
const numberById = new Map(loops.map((row, index) => [row.id, index + 1]));

// Shares that are shown first: of elapsed time where every agent divides it, else of CPU time.
const walled = Boolean((report.totals || {}).wall);
const shown = (row) => (walled ? row.wall_share : row.share);
const shownLow = (row) => (walled ? row.wall_share_low : row.share_low);
const shownHigh = (row) => (walled ? row.wall_share_high : row.share_high);

// "#3 compute_forces", as the report in text numbers them.
function loopName(id) {
  const row = rowById.get(id);
  const number = numberById.get(id);
  return (number ? `#${number} ` : "") + (row ? place(row) : clean(id || "?"));
}

const BOUNDS = {
  memory_bound: ["memory", "It waits for memory: its arithmetic alone is much faster."],
  arithmetic_bound: [
    "arithmetic",
    "It waits for arithmetic: its memory accesses alone are much faster.",
  ],
  balanced: [
    "balanced",
    "Its memory accesses and its arithmetic each take about as long as the whole.",
  ],
  unsaturated: [
    "unsaturated",
    "Its memory accesses and its arithmetic are each well below the whole: it waits for dependences or the front end.",
  ],
  overhead_bound: ["plain", "Its control alone takes as long as the loop."],
  not_bound_beyond_L1: ["balanced", "No memory beyond the L1 cache limits it."],
};
const boundKind = (bound) => (BOUNDS[bound] || ["plain"])[0];
const boundText = (of) => {
  const known = of.bound && of.bound !== "unknown";
  return known
    ? spaced(of.bound) + (of.sure === false ? " (unsure)" : "")
    : "unknown" + (of.why ? `: ${of.why}` : "");
};

// "1 of 2 ranks" where not all that were asked have the figure; empty else, also of a perfd that does not tell.
const someRanks = (of) =>
  of.ranks_asked > of.ranks ? `${count(of.ranks)} of ${plural(of.ranks_asked, "rank")}` : "";
// Of a perfd of before, every ratio has its interval.
const hasInterval = (f) => f.has_interval !== false;

// What the fidelity of a loop is of: protocol, runs, live instances.
function fidelityOf(fidelity, protocol) {
  return [
    clean(protocol || "?"),
    fidelity.runs > 0
      ? `${plural(fidelity.runs, "run")} in ${plural(fidelity.shadows, "shadow")}`
      : "",
    fidelity.live_instances > 0
      ? `against ${plural(fidelity.live_instances, "live instance")}`
      : "",
  ]
    .filter(Boolean)
    .join(", ");
}

// What is left of the loop in each variant. GROUP(2), PREFETCH(50): by the word before the bracket.
const VARIANTS = {
  LS: ["only its loads and stores", "memory"],
  FP: ["only its arithmetic", "arithmetic"],
  DL1: ["every access pinned to the L1 cache", "memory"],
  NO_DIV: ["without its divisions", "arithmetic"],
  NO_SQRT: ["without its square roots", "arithmetic"],
  NO_RED: ["without its accumulation chains", "arithmetic"],
  NO_CALL: ["without its calls", "plain"],
  S2L: ["stores turned into loads", "memory"],
  NO_STORE: ["without its stores", "memory"],
  GROUP: ["without one array", "memory"],
  PREFETCH: ["with additional prefetches", "memory"],
  CTRL: ["only its control", "plain"],
};
const isShown = (figure) =>
  figure.variant !== figure.base && figure.variant !== "COUNT" && figure.variant !== "TRACE";
const variantKind = (name) => (VARIANTS[String(name).split(/[(+]/)[0]] || ["", "plain"])[1];
function variantLabel(name) {
  const parts = String(name)
    .split("+")
    .map((part) => (VARIANTS[part.split("(")[0]] || [""])[0]);
  return parts.every(Boolean) ? `${clean(name)}: ${parts.join(", ")}` : clean(name);
}

// Sections in the order of their registration; one without data (build returns null) does not appear.
const sections = [];
const section = (id, title, sources, build) => sections.push({id, title, sources, build});
