// The whole cluster in numbers, above the cards.

import { bar } from "./bar.js";
import { badge, element } from "./dom.js";
import { clock, memory } from "./format.js";

/** Return what the cluster has and has given away, and what needs an administrator. */
export function overview(summary) {
  const { memoryMiB, allocatedMiB, gpus, healthyGpus, nodes, usableNodes, pods, findings } = summary;
  const guaranteed = healthyGpus * 100 - summary.freeCores;
  return [
    element("div", { class: "tiles" },
      tile("Nodes usable", `${usableNodes} of ${nodes}`, usableNodes < nodes),
      tile("Cards healthy", `${healthyGpus} of ${gpus}`, healthyGpus < gpus),
      tile("Memory allocated", `${memory(allocatedMiB)} of ${memory(memoryMiB)}`, false, bar([[allocatedMiB, "given"]], memoryMiB)),
      tile("Time guaranteed", `${guaranteed / 100} of ${healthyGpus} cards`, false, bar([[guaranteed, "given"]], healthyGpus * 100)),
      tile("Pods", `${pods.Running} running, ${pods.Pending} waiting`, pods.Pending > 0)),
    summary.scheduler ? element("p", { class: "error" }, `This replica places no pods: ${summary.scheduler}`) : "",
    findings.length ? problems(findings) : "",
  ];
}

function tile(label, text, isNotable, below = "") {
  return element("div", { class: isNotable ? "tile notable" : "tile" },
    element("span", { class: "label" }, label), element("strong", {}, text), below);
}

function problems(findings) {
  const items = findings.map((each) => element("li", {},
    badge(each.reason, each.severity === "error" ? "bad" : "warning"),
    ` ${each.about}: ${each.detail}${each.since ? `, since ${clock(each.since)}` : ""}`));
  return element("details", { class: "findings", open: findings.length <= 5 },
    element("summary", {}, `${findings.length} to look at`), element("ul", {}, items));
}
