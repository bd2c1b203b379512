// Elements, text and tables. Whatever comes from the profiled job goes through `clean` and becomes text, never markup.

// What could reorder or hide the letters around it: control characters, and marks of direction.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const clean = (text) => String(text ?? "?").replace(HIDDEN, "\ufffd");

// h("p", {class: "x", onclick: f}, "text", element, null, [more]): attributes are this page's own words.
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, clean(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : clean(child));
  }
  return element;
}

const SOURCES = {
  sampled: "counted in samples of the running job",
  hardware: "read from counters of the processor",
  live: "timed in the running job itself",
  shadow: "timed in a copy of the running job that dies after the measurement",
  simulated: "computed by a model of the caches",
  replayed: "read from a recording",
  estimated: "computed from measured figures",
};
const source = (name) =>
  h(
    "span",
    {class: `source source-${name in SOURCES ? name : "other"}`, title: SOURCES[name]},
    name,
  );

// columns: [{head, cell(row) -> text or element, number: true}]
function table(columns, rows, caption) {
  const line = (row) =>
    h(
      "tr",
      null,
      columns.map((c) => h("td", {class: c.number && "number"}, c.cell(row))),
    );
  return h(
    "div",
    {class: "scroll", tabindex: 0, role: "region", "aria-label": caption || "table"},
    h(
      "table",
      null,
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          columns.map((c) => h("th", {class: c.number && "number", scope: "col"}, c.head)),
        ),
      ),
      h("tbody", null, rows.map(line)),
    ),
  );
}

const more = (summary, ...children) => h("details", null, h("summary", null, summary), children);

// Of a long list the first `most`, and how many that leaves out.
function cut(list, most, what, make) {
  const shown = make(list.slice(0, most));
  if (list.length <= most) return shown;
  return [
    shown,
    h(
      "p",
      {class: "quiet"},
      `… and ${list.length - most} more ${what}; the report as JSON has all.`,
    ),
  ];
}
