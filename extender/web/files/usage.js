// What was used in a period, and what containers should ask for.

import * as address from "./address.js";
import * as api from "./api.js";
import { bar } from "./bar.js";
import { chart } from "./charts.js";
import { choice, element, table, updateChildren } from "./dom.js";
import { COLORS } from "./figures.js";
import { beginning, clock, duration, grouped, hours, memory, percent } from "./format.js";
import { cardHours, csv } from "./usagefigures.js";

const GROUPS = ["namespace", "owner", "model", "node", "card", "day"];
const PERIODS = [["24h", "the last 24 hours"], ["7d", "the last 7 days"], ["30d", "the last 30 days"], ["month", "this month"], ["before", "last month"]];
const DEFAULTS = { by: "namespace", period: "7d" };
const DAY_MS = 86_400_000;
const MOST_ROWS = 10_000; // that the REST answers with
const RIGHT_SIZE = [
  ["Owner", "name"], ["Container", ""], ["Asks, time", "number"], ["Used, p95", "number"], ["Asks, memory", "number"], ["Peak", "number"], ["Advice", "text"],
];

export const title = () => "Usage";

export function open(root, _, reload) {
  const chosen = address.chosen(DEFAULTS);
  if (!GROUPS.includes(chosen.by)) chosen.by = DEFAULTS.by;
  if (!PERIODS.some(([period]) => period === chosen.period)) chosen.period = DEFAULTS.period;
  let found = null;
  const heading = element("p", { class: "empty", role: "status" });
  const report = element("div");
  const days = element("div", { class: "charts" });
  const advice = element("div");
  const choose = (name) => (value) => {
    chosen[name] = value;
    address.keep(chosen, DEFAULTS);
    reload();
  };
  root.append(
    element("h1", {}, "Usage"),
    element("div", { class: "controls" },
      choice("By", GROUPS.map((group) => [group, group]), chosen.by, choose("by")),
      choice("of", PERIODS, chosen.period, choose("period")),
      element("button", { type: "button", click: () => found && save() }, "CSV"),
      element("button", { type: "button", click: () => print() }, "Print")),
    heading, days, report,
    advice,
  );

  async function load(changes = null) {
    if (changes?.length) return; // usage grows by the hour, not by the change
    const period = span(chosen.period, new Date());
    const [usage, daily, sizes] = await Promise.all([
      api.get("usage", { by: chosen.by, ...period }), usageByDay(period),
      api.get("rightsize", period.until ? { since: period.since, until: period.until } : { since: period.since })]);
    found = usage;
    heading.textContent = `${clock(usage.since)} to ${clock(usage.until)}. A card-hour is a whole card for an hour; a share counts as the larger of its part of memory and of time.${beginning(usage)}`;
    drawDays(days, daily, usage);
    updateChildren(report, usageTable(chosen.by, usage));
    const wasteful = sizes.items.filter((size) => size.advice.length);
    const tooLittle = sizes.items.filter((size) => !size.enoughMeasured).length;
    updateChildren(advice, element("h2", {}, "Containers that ask for more than they use"), table(RIGHT_SIZE, wasteful.map(rightSize), "None."),
      tooLittle ? element("p", {}, `Of ${tooLittle} more, too little was measured for advice: it needs an hour.`) : "");
  }

  /** Save the report as a file, with the rows that the table leaves out. */
  async function save() {
    const by = chosen.by;
    const all = found.itemsLeftOut ? await api.get("usage", { by, ...span(chosen.period, new Date()), limit: MOST_ROWS }) : found;
    download(csv(by, all), `usage-by-${by}.csv`);
  }
  return load;
}

/** Return the parameters of a period; months are those of UTC, as days are. */
function span(period, now) {
  const first = (months) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 1)).toISOString();
  if (period === "month") return { since: first(0) };
  if (period === "before") return { since: first(-1), until: first(0) };
  return { since: period };
}

/** Return card-hours by day, as `cardHours` does: of all, and of the namespaces with most of them. */
async function usageByDay(period) {
  const [total, largest] = await Promise.all([
    api.get("usage", { by: "day", ...period }), api.get("usage", { by: "namespace", ...period, limit: COLORS.length })]);
  const namespaces = largest.items.map((row) => row.group.namespace);
  const parts = namespaces.length ? await api.get("usage", { by: ["day", "namespace"], namespace: namespaces, ...period }) : { items: [] };
  return cardHours(total, parts, namespaces);
}

/** Draw card-hours by day. A single day is no chart. */
function drawDays(root, { days, lines: [all, ...parts] }, { since, until }) {
  if (days.length < 2) {
    root.replaceChildren();
    return;
  }
  const lines = [{ ...all, color: "--used", fill: true }, ...parts.map((line, index) => ({ ...line, color: COLORS[index] }))];
  const times = days.map((day) => Date.parse(day) + DAY_MS / 2);
  const period = [Math.min(times[0], Date.parse(since)), Math.max(times.at(-1), Date.parse(until))];
  root.replaceChildren(chart("Card-hours by day", times, lines, (value) => grouped(Math.round(value * 10) / 10), period));
}

function usageTable(by, { items, itemsLeftOut, currency }) {
  const hasCost = items.some((row) => row.cost !== null);
  const most = Math.max(1, ...items.map((row) => row.shareSeconds));
  const columns = [
    [by[0].toUpperCase() + by.slice(1), "name"], ["Card-hours", "number"], ["Part of the largest", "bar-cell"], ["GPU-hours asked", "number"], ["GPU-hours used", "number"], ["GiB-hours", "number"],
    ["Mean wait", "number"], ["Pods", "number"], ...(hasCost ? [[currency ? `Cost, ${currency}` : "Cost", "number"]] : []),
  ];
  const rows = items.map((row) => [
    row.group[by], hours(row.shareSeconds), bar([[row.shareSeconds, "given"]], most), hours(row.gpuSecondsAsked), hours(row.gpuSecondsUsed),
    grouped((row.mibHours / 1024).toFixed(1)), row.bound ? duration(row.waitingSeconds / row.bound) : "–", grouped(row.bound),
    ...(hasCost ? [row.cost === null ? "–" : grouped(row.cost.toFixed(2))] : []),
  ]);
  return element("div", { class: "usage" }, table(columns, rows, "Nothing was used in this time. Usage appears when a pod with a share of a card runs."),
    itemsLeftOut ? element("p", {}, `${itemsLeftOut} more rows are not shown.`) : "");
}

function rightSize(size) {
  return [
    `${size.namespace}/${size.owner}`, size.container, size.wholeCard ? "whole card" : percent(size.askedCores),
    percent(size.p95Cores), memory(size.askedMiB), memory(size.peakMiB), size.advice.join("; "),
  ];
}

function download(text, name) {
  const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href, download: name }).click();
  URL.revokeObjectURL(href);
}
