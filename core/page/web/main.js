// Puts the page together: the head, a table of contents, the sections that have data.

// What a recording tells was not sampled by perfd.
const ofRecording = (name) =>
  report.provenance === "replayed" && name === "sampled" ? "replayed" : name;

function build(one) {
  let body = null;
  try {
    body = one.build();
  } catch (error) {
    // one section that cannot be drawn must not hide the others
    console.error(`section ${one.id}:`, error);
    body = h(
      "p",
      {class: "notice notice-error"},
      `This section could not be drawn: ${error.message}`,
    );
  }
  if (body === null) return null;
  return h(
    "section",
    {id: one.id, "aria-labelledby": `${one.id}-title`},
    h("h2", {id: `${one.id}-title`}, one.title, " ", one.sources.map(ofRecording).map(source)),
    body,
  );
}

const built = sections
  .map((one) => ({one, element: build(one)}))
  .filter(({element}) => element !== null);
document.title = `${clean(status.id || "report")} ${headline()} - perfd`;
document.getElementById("page").replaceChildren(
  overview(),
  h(
    "nav",
    {"aria-label": "Sections"},
    built.map(({one}) => h("a", {href: `#${one.id}`}, one.title)),
  ),
  ...built.map(({element}) => element),
);
