// Figures as people read them, and the names of places in the code.
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const list = (value) => (Array.isArray(value) ? value : []);

const percent = (ratio, digits = 1) =>
  isNumber(ratio) ? `${(ratio * 100).toFixed(digits)} %` : "–";
const percents = (low, high) => `[${(low * 100).toFixed(1)}, ${(high * 100).toFixed(1)}]`;
const two = (value) => (isNumber(value) ? value.toFixed(2) : "–");
const twos = (ratio) => `${two(ratio.value)} [${two(ratio.low)}, ${two(ratio.high)}]`;
const count = (value) =>
  isNumber(value) ? Math.round(value).toLocaleString("en").replaceAll(",", "\u202f") : "–";
const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

function time(ns) {
  if (!isNumber(ns)) return "–";
  const size = Math.abs(ns);
  if (size < 1e3) return `${ns.toFixed(0)} ns`;
  if (size < 1e6) return `${(ns / 1e3).toPrecision(3)} µs`;
  if (size < 1e9) return `${(ns / 1e6).toPrecision(3)} ms`;
  return `${(ns / 1e9).toPrecision(size < 1e10 ? 3 : 4)} s`;
}

const seconds = (value) =>
  isNumber(value) ? `${value.toFixed(value !== 0 && Math.abs(value) < 0.1 ? 4 : 2)} s` : "–";
const utc = (ns) =>
  ns ? `${new Date(ns / 1e6).toISOString().slice(0, 19).replace("T", " ")} UTC` : "–";
const spaced = (key) => String(key || "").replaceAll("_", " ");

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; ++unit) value /= 1000;
  return `${value.toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

const baseName = (path) =>
  String(path || "")
    .split("/")
    .pop();

// Why a profile ended, by its key in the report; that its time was over goes without saying.
const ENDS = {
  known: "every hot loop was known",
  nothing_learnt: "nothing more was learnt for long",
  ranks_ended: "the processes ended",
  job_ended: "the scheduler's job ended",
  cancelled: "it was cancelled",
  nodes_lost: "no agent was left",
};

// What the kernel did for a thread, by its key in the report.
const CAUSES = {
  unknown: "cause not known",
  page_faults: "page faults",
  memory_return: "return of memory",
  memory_mapping: "mapping of memory",
  io: "files and sockets",
  copies: "copies between processes",
  waiting: "waits and wake-ups",
  interrupts: "interrupts",
  other_calls: "other calls",
};

function place(row) {
  if (row.kernel_cause && row.kernel_cause !== "unknown")
    return `[kernel] ${CAUSES[row.kernel_cause] || clean(row.kernel_cause)}${row.kernel_caller ? `, by ${clean(row.kernel_caller)}` : ""}`;
  const inlined = row.loop && row.loop.inlined_from;
  return clean(row.function || "?") + (inlined ? ` (inlined ${clean(inlined)})` : "");
}

function lines(row) {
  if (!row.file) return "";
  const [first, last] = [row.first_line, row.last_line];
  return (
    clean(baseName(row.file)) +
    (first > 0 ? `:${first}` : "") +
    (first > 0 && last > first ? `–${last}` : "")
  );
}

// "file.c:3" or else the module: where to look.
const where = (row) => lines(row) || clean(baseName(row.module));

function facts(row) {
  if (!row.loop) return "no loop";
  return [
    `depth ${row.loop.depth}`,
    row.loop.innermost ? "innermost" : "outer",
    row.loop.irreducible && "irreducible",
    row.openmp && "OpenMP",
    row.loops_of_lines > 1 &&
      (row.main_of_lines === row.id
        ? `main of ${row.loops_of_lines} loops of its lines`
        : "peeled, remainder or other part of its lines"),
  ]
    .filter(Boolean)
    .join(", ");
}

const rankName = (rank, node) => `rank ${clean(rank)} on ${clean(node)}`;
const shorten = (text, letters) =>
  text.length > letters ? `${text.slice(0, Math.max(letters - 1, 1))}…` : text;
