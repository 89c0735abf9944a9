// What was used in a period, and what containers should ask for.

import * as api from "./api.js";
import { choice, element, show, table } from "./dom.js";
import { duration, grouped, hours, memory, percent } from "./format.js";

const GROUPS = ["namespace", "owner", "model", "node", "card", "day"];
const PERIODS = [["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]];
const RIGHT_SIZE = [
  ["Owner", "name"], ["Container", ""], ["Asks", "number"], ["Used, p95", "number"], ["Asks", "number"], ["Peak", "number"], ["Advice", "text"],
];

export const title = () => "Usage";

export function open(root) {
  let by = "namespace";
  let period = "7d";
  const report = element("div");
  const advice = element("div");
  const chosen = (set) => (value) => {
    set(value);
    load();
  };
  root.append(
    element("h1", {}, "Usage"),
    element("div", { class: "controls" },
      choice("By", GROUPS.map((each) => [each, each]), by, chosen((value) => { by = value; })),
      choice("of the last", PERIODS, period, chosen((value) => { period = value; }))),
    report,
    element("h2", {}, "Containers that ask for more than they use"),
    advice,
  );

  async function load() {
    const [usage, sizes] = await Promise.all([api.get("usage", { by, since: period }), api.get("rightsize", { since: period })]);
    show(report, usageTable(by, usage));
    const wasteful = sizes.items.filter((each) => each.advice.length);
    const tooLittle = sizes.items.filter((each) => !each.enoughMeasured).length;
    show(advice, table(RIGHT_SIZE, wasteful.map(rightSize), "None."),
      tooLittle ? element("p", {}, `Of ${tooLittle} more, too little was measured for advice: it needs an hour.`) : "");
  }
  return load;
}

function usageTable(by, { items, itemsLeftOut }) {
  const hasCost = items.some((each) => each.cost !== null);
  const columns = [
    [by[0].toUpperCase() + by.slice(1), "name"], ["Card-hours", "number"], ["GPU-hours asked", "number"], ["GPU-hours used", "number"], ["GiB-hours", "number"],
    ["Waited", "number"], ["Pods", "number"], ...(hasCost ? [["Cost", "number"]] : []),
  ];
  const rows = items.map((each) => [
    each.group[by], hours(each.shareSeconds), hours(each.gpuSecondsAsked), hours(each.gpuSecondsUsed),
    grouped((each.mibHours / 1024).toFixed(1)), duration(each.waitingSeconds), grouped(each.bound),
    ...(hasCost ? [each.cost === null ? "–" : grouped(each.cost.toFixed(2))] : []),
  ]);
  return element("div", {}, table(columns, rows, "Nothing was used in this period."),
    itemsLeftOut ? element("p", {}, `${itemsLeftOut} more rows are not shown.`) : "");
}

function rightSize(each) {
  return [
    `${each.namespace}/${each.owner}`, each.container, each.wholeCard ? "whole card" : percent(each.askedCores),
    percent(each.p95Cores), memory(each.askedMiB), memory(each.peakMiB), each.advice.join("; "),
  ];
}
