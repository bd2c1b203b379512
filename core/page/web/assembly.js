// The loop's instructions beside those of a variant. Long stretches without a change are folded.
const NEAR = 4; // unchanged instructions shown around a change
const WORTH_FOLDING = 8;
const MOST_INSTRUCTIONS = 2000;

// [{line}] and [{from, to}] of what is folded.
function folded(lines) {
  const near = lines.map(() => lines.length <= 24);
  lines.forEach((line, at) => {
    if (line.changed) near.fill(true, Math.max(0, at - NEAR), at + NEAR + 1);
  });
  const out = [];
  for (let at = 0; at < lines.length; ++at) {
    let end = at;
    while (end < lines.length && !near[end]) ++end;
    if (end - at >= WORTH_FOLDING) {
      out.push({from: at, to: end});
      at = end - 1;
    } else {
      out.push({line: lines[at]});
    }
  }
  return out;
}

function listing(one) {
  const all = one.lines.slice(0, MOST_INSTRUCTIONS);
  const row = (line) =>
    h(
      "tr",
      {class: line.changed ? "changed" : null},
      h("td", null, line.address),
      h("td", {class: line.changed === "deleted" && "deleted"}, line.original),
      h("td", null, line.changed || h("span", {class: "same"}, "same")),
    );
  const fold = ({from, to}) => {
    const place = h(
      "tr",
      {class: "fold"},
      h(
        "td",
        {colspan: 3},
        `… ${to - from} instructions that are the same `,
        h(
          "button",
          {type: "button", onclick: () => place.replaceWith(...all.slice(from, to).map(row))},
          "show",
        ),
      ),
    );
    return place;
  };
  const changed = all.filter((line) => line.changed).length;
  return [
    h("p", {class: "quiet"}, `${plural(changed, "instruction")} of ${all.length} changed.`),
    h(
      "table",
      {class: "assembly"},
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["address", "REF", clean(one.variant)].map((head) => h("th", {scope: "col"}, head)),
        ),
      ),
      h(
        "tbody",
        null,
        folded(all).map((part) => (part.line ? row(part.line) : fold(part))),
      ),
    ),
    one.lines.length > all.length &&
      h("p", {class: "quiet"}, `… and ${one.lines.length - all.length} more instructions`),
  ].filter(Boolean);
}

function assembly(loop, open) {
  const all = list(loop.listings).filter((one) => list(one.lines).length > 0);
  if (all.length === 0) return null;
  const best = list(loop.gains).map((gain) => gain.variant);
  const first = Math.max(
    0,
    all.findIndex((one) => one.variant === best[0]),
  );
  const place = h("div", null, listing(all[first]));
  const choose = h(
    "select",
    {"aria-label": "variant", onchange: () => place.replaceChildren(...listing(all[choose.value]))},
    all.map((one, index) =>
      h("option", {value: index, selected: index === first && ""}, variantLabel(one.variant)),
    ),
  );
  return h(
    "details",
    {"data-print": "", class: "listing", open: open && ""},
    h("summary", null, "Assembly: REF beside a variant"),
    h("p", {class: "choice"}, h("label", null, "variant ", choose)),
    place,
  );
}
