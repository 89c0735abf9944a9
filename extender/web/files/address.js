// The address after #: the view, and behind ? what is chosen in it. Back, reload and a copied address show the same.

const last = new Map(); // by view, its address when it was shown last

/** Return the parts of the address's path: ["pods", "default", "train"]. */
export function path() {
  return location.hash.replace(/^#\/?/, "").split("?")[0].split("/").map(decoded);
}

/** Return what is chosen in the view: its defaults, replaced by what the address says. */
export function chosen(defaults) {
  const said = new URLSearchParams(location.hash.split("?").slice(1).join("?"));
  return Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, said.get(name) ?? value]));
}

/** Write what is chosen into the address, without a new entry of the browser's history; defaults are left out. */
export function keep(values, defaults) {
  const said = new URLSearchParams(Object.entries(values).filter(([name, value]) => value !== defaults[name]));
  const view = location.hash.split("?")[0] || "#/cards";
  const text = said.toString();
  globalThis.history.replaceState(null, "", text ? `${view}?${text}` : view);
  last.set(view, location.hash);
}

/** Return the address at which a view was shown last, with what was chosen then. */
export function lastOf(view) {
  return last.get(view) ?? view;
}

/** Return a part of the address without escapes; a part with wrong escapes stays as it is. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
