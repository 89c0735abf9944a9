// The figures of a usage report: card-hours by day as lines, and the report as CSV. Without a page, so that tests can add them up.

const HOUR_S = 3600;

/**
 * Return the days of a report, and card-hours by day as lines: those of all, and of each of some namespaces.
 * `total` is the usage by day, `parts` that by day and namespace: it need not have all namespaces.
 */
export function cardHours(total, parts, namespaces) {
  const days = [...new Set(total.items.map((row) => row.group.day))].sort();
  const of = (rows) => {
    const seconds = new Map();
    for (const { group, shareSeconds } of rows) seconds.set(group.day, (seconds.get(group.day) ?? 0) + shareSeconds);
    return days.map((day) => (seconds.get(day) ?? 0) / HOUR_S);
  };
  const lines = namespaces.map((name) => ({ name, values: of(parts.items.filter(({ group }) => group.namespace === name)) }));
  return { days, lines: [{ name: "all", values: of(total.items) }, ...lines] };
}

/** Return a report as CSV, in the units of the table. A cell that a spreadsheet would compute begins with '. */
export function csv(by, { items, itemsLeftOut, currency }) {
  const hours = (seconds) => (seconds === null ? null : seconds / HOUR_S);
  const lines = [
    [by, "card-hours", "gpu-hours-asked", "gpu-hours-used", "gib-hours", "waited-seconds-of-all-pods", "pods", currency ? `cost-${currency}` : "cost"],
    ...items.map((row) => [
      row.group[by], hours(row.shareSeconds), hours(row.gpuSecondsAsked), hours(row.gpuSecondsUsed), row.mibHours / 1024, row.waitingSeconds, row.bound, row.cost,
    ]),
    ...(itemsLeftOut ? [[`${itemsLeftOut} more are left out`]] : []),
  ];
  return lines.map((line) => line.map(cell).join(",")).join("\r\n");
}

function cell(value) {
  if (typeof value !== "string") return value === null ? "" : String(value);
  return `"${(/^[=+\-@\t\r]/.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`;
}
