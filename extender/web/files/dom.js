// Builds elements. Text is set as text, never parsed as HTML: names of pods and messages are written by users.

/** Return an element. `attributes` with a function as value are event listeners; null and false are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

/** Return a table; `columns` are [heading, class of its cells], `rows` are lists of cells or ready `tr` elements. */
export function table(columns, rows, empty) {
  if (!rows.length) return element("p", { class: "empty" }, empty);
  const head = columns.map(([heading, kind]) => element("th", { scope: "col", class: kind }, heading));
  const body = rows.map((row) => (row instanceof Element ? row : line(columns, row)));
  return element(
    "div", { class: "scroll" },
    element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)),
  );
}

function line(columns, cells) {
  return element("tr", {}, cells.map((cell, index) => {
    const kind = columns[index][1];
    return element("td", { class: kind, title: kind === "name" && typeof cell === "string" && cell }, cell ?? "");
  }));
}

/** Return a link to a pod's page. A long name is cut where it is shown, and whole in the title. */
export function podLink(namespace, name) {
  const href = `#/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return element("a", { href, class: "pod", title: `${namespace}/${name}` }, `${namespace}/${name}`);
}

/** Return a label of a colour: good, warning, bad or plain. */
export function badge(text, kind = "plain") {
  return element("span", { class: `badge ${kind}`, title: text }, text);
}

/** Return the words about the node that lacks the least for a pod, with links to the pods whose end would make room. */
export function nearestFit({ node, detail, wouldHelp }) {
  const links = wouldHelp.flatMap((each, index) => [index ? ", " : " ", podLink(...each.split("/"))]);
  return [`Nearest: ${node}, ${detail}.`, links.length ? [" The end of these pods would make room:", links, "."] : ""];
}

const MOST_ROWS = 1000; // of one request

/** Return a button that loads a longer list; `grow` takes the new number of rows. Nothing where the list is whole. */
export function moreButton({ nextCursor }, limit, grow) {
  if (!nextCursor) return "";
  if (limit >= MOST_ROWS) return element("p", { class: "empty" }, `Only the first ${MOST_ROWS} rows are shown.`);
  return element("button", { click: () => grow(Math.min(MOST_ROWS, limit * 3)) }, "Show more");
}

/** Return an input with its label. */
export function field(label, attributes) {
  const input = element("input", { autocomplete: "off", spellcheck: "false", ...attributes });
  return [element("label", {}, `${label} `, input), input];
}

/** Return a choice with its label; `options` are [value, text]. */
export function choice(label, options, chosen, onChange) {
  const select = element("select", { change: () => onChange(select.value) },
    options.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
  return element("label", {}, `${label} `, select);
}
