// A drawn bar: the parts of a whole that are allocated, and how much of the whole is used.

/** Return a bar of parts; `used` is marked by a line, in the unit of the parts. */
export function bar(parts, whole, used = null) {
  const shown = parts.filter(([amount]) => amount > 0).slice(0, 64);
  const svg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const drawn = svg("svg", { class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  let from = 0;
  for (const [amount, kind] of shown) {
    const width = Math.min(1000 - from, (amount / Math.max(whole, 1)) * 1000);
    drawn.append(svg("rect", { class: kind, x: from, y: 0, width: Math.max(0, width - 3), height: 10 }));
    from += width;
  }
  if (used !== null) drawn.append(svg("rect", { class: "used", x: 0, y: 7, width: Math.min(1000, (used / Math.max(whole, 1)) * 1000), height: 3 }));
  return drawn;
}
