// The whole cluster in numbers, above the cards.

import { bar } from "./bar.js";
import { badge, element, podLink } from "./dom.js";
import { clock, grouped, memory, ofCards } from "./format.js";

/** Return what the cluster has and has allocated, and what needs an administrator. */
export function overview(summary) {
  const { memoryMiB, allocatedMiB, allocatedCores, gpus, healthyGpus, nodes, usableNodes, pods, findings } = summary;
  return [
    element("div", { class: "tiles" },
      tile("Nodes usable", `${grouped(usableNodes)} of ${grouped(nodes)}`, usableNodes < nodes),
      tile("Cards healthy", `${grouped(healthyGpus)} of ${grouped(gpus)}`, healthyGpus < gpus),
      tile("Memory allocated", `${memory(allocatedMiB)} of ${memory(memoryMiB)}`, false, bar([[allocatedMiB, "given"]], memoryMiB)),
      tile("Time guaranteed", ofCards(allocatedCores, gpus), false, bar([[allocatedCores, "given"]], gpus * 100)),
      tile("Pods", numbers(pods), pods.Pending > 0)),
    summary.scheduler ? element("p", { class: "error" }, `No replica places pods: ${summary.scheduler}`) : "",
    findings.length ? problems(findings) : "",
  ];
}

/** Numbers of pods: those that run and those that wait always, the others where there are any. */
function numbers({ Running: running, Starting: starting, Terminating: terminating, Pending: pending }) {
  return [`${grouped(running)} running`, starting && `${grouped(starting)} starting`, terminating && `${grouped(terminating)} terminating`, `${grouped(pending)} waiting`]
    .filter(Boolean).join(", ");
}

function tile(label, text, isNotable, below = "") {
  return element("div", { class: isNotable ? "tile notable" : "tile" },
    element("span", { class: "label" }, label), element("strong", {}, text), below);
}

/** Return what a finding is about, as a link where it has a page. */
function subject(about) {
  const [, namespace, name] = /^pod ([^/\s]+)\/(\S+)$/.exec(about) ?? [];
  if (name) return podLink(namespace, name);
  const [, text, uuid] = /^(\S+ card \d+) \((\S+)\)$/.exec(about) ?? [];
  return uuid ? element("a", { href: `#/cards/${encodeURIComponent(uuid)}` }, text) : about;
}

function problems(findings) {
  const items = findings.map((each) => element("li", {},
    badge(each.reason, each.severity === "error" ? "bad" : "warning"),
    " ", subject(each.about), `: ${each.detail}${each.since ? `, since ${clock(each.since)}` : ""}`));
  return element("details", { class: "findings", open: findings.length <= 5 }, // later the reader decides
    element("summary", {}, `${findings.length} to look at`), element("ul", {}, items));
}
