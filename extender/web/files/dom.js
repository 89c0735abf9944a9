// Builds elements. Text is set as text, never parsed as HTML: names of pods and messages are written by users.

/** Return an element. `attributes` with a function as value are event listeners; null and false are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") listen(made, name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

/** Listen by a property, which `updateChildren` can take from another element. */
function listen(made, name, handler) {
  made.handlers ??= {};
  if (!Object.hasOwn(made.handlers, name)) made.addEventListener(name, (event) => made.handlers[name](event));
  made.handlers[name] = handler;
}

/**
 * Give an element these children, and change only what differs: focus, selection and scrolling stay where they are.
 * An element with `data-key` is that child of before which had the key, wherever it stood.
 */
export function updateChildren(parent, ...children) {
  const wanted = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== "")
    .map((child) => (child instanceof Node ? child : document.createTextNode(child)));
  const known = new Map([...parent.children].reverse().filter((child) => child.dataset?.key).map((child) => [child.dataset.key, child]));
  wanted.forEach((child, index) => {
    const kept = known.get(child.dataset?.key);
    known.delete(child.dataset?.key); // several rows may be about one pod
    if (kept && kept !== parent.childNodes[index]) parent.insertBefore(kept, parent.childNodes[index] ?? null);
    const before = parent.childNodes[index];
    if (!before) parent.append(child);
    else if (before !== child) morph(before, child, Boolean(kept));
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

/** Make one node equal to another, in its place; one with a key that is not in the list any more is not changed. */
function morph(before, wanted, hasSameKey) {
  const isOther = before.nodeName !== wanted.nodeName || (!hasSameKey && (before.dataset?.key || wanted.dataset?.key)) || wanted.nodeName === "FIGURE";
  if (isOther) {
    if (before.dataset?.key) before.before(wanted);
    else before.replaceWith(wanted);
    return;
  }
  if (before.nodeType === Node.TEXT_NODE) {
    if (before.data !== wanted.data) before.data = wanted.data;
    return;
  }
  for (const { name, value } of [...wanted.attributes]) if (before.getAttribute(name) !== value) before.setAttribute(name, value);
  for (const { name } of [...before.attributes]) if (!wanted.hasAttribute(name) && name !== "open") before.removeAttribute(name);
  for (const [name, handler] of Object.entries(wanted.handlers ?? {})) listen(before, name, handler);
  updateChildren(before, ...wanted.childNodes);
}

/** Return a table; `columns` are [heading, class of its cells], `rows` are lists of cells or ready `tr` elements. */
export function table(columns, rows, empty) {
  if (!rows.length) return element("p", { class: "empty" }, empty);
  const head = columns.map(([heading, kind]) => element("th", { scope: "col", class: kind }, heading));
  const body = rows.map((row) => (row instanceof Element ? row : line(columns, row)));
  return element(
    "div", { class: "scroll" },
    element("table", { class: "stacks-small" }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)),
  );
}

function line(columns, cells) {
  const link = cells.flat(Infinity).find((cell) => cell instanceof Element && cell.nodeName === "A");
  return element("tr", { "data-key": link?.getAttribute("href") }, cells.map((cell, index) => {
    const kind = columns[index][1];
    return element("td", { class: kind, title: kind === "name" && typeof cell === "string" && cell, "data-label": columns[index][0] }, cell ?? "");
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

/** Return a list of suggestions for inputs; `offer` takes the words. */
export function suggestions(id) {
  const list = element("datalist", { id });
  list.offer = (words) => updateChildren(list, [...words].sort().map((value) => element("option", { value })));
  return list;
}

/** Return a choice with its label; `options` are [value, text]. */
export function choice(label, options, chosen, onChange) {
  const select = element("select", { change: () => onChange(select.value) },
    options.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
  return element("label", {}, `${label} `, select);
}
