// Pods that ask for GPUs.

import * as api from "./api.js";
import { badge, choice, element, field, moreButton, podLink, show, table } from "./dom.js";
import { clock, duration, memory, percent, podStatus } from "./format.js";

const PAGE = 100;
const COLUMNS = [
  ["Pod", "name"], ["Status", ""], ["Node", "name"], ["Asks for", ""], ["Memory in use", "number"], ["Time used", "number"], ["Idle", "number"],
];
const STATUSES = ["", "Pending", "Starting", "Running", "Terminating", "Ended"];
const KINDS = { Running: "good", Pending: "warning", Starting: "warning" };

export const title = () => "Pods";

export function open(root) {
  let status = "";
  let limit = PAGE;
  const list = element("div");
  const [namespaceLabel, namespace] = field("Namespace", { type: "search", placeholder: "every namespace", change: () => load() });
  const [selectorLabel, selector] = field("Labels", { type: "search", placeholder: "app=train", change: () => load() });
  root.append(
    element("h1", {}, "Pods"),
    element("div", { class: "controls" }, namespaceLabel, selectorLabel,
      choice("Status", STATUSES.map((each) => [each, each || "any"]), status, (chosen) => {
        status = chosen;
        load();
      })),
    list,
  );

  async function load() {
    const query = { namespace: namespace.value.trim(), selector: selector.value.trim(), status, sort: "namespace,name", limit };
    const page = await api.get("pods", query);
    show(list,
      table(COLUMNS, page.items.map(row), "No pod that asks for a GPU is like this."),
      moreButton(page, limit, (rows) => {
        limit = rows;
        load();
      }),
    );
  }
  return load;
}

function row(pod) {
  return [
    [podLink(pod.namespace, pod.name), " ", pod.problems.length ? badge("problem", "bad") : "",
      pod.staleSince ? badge(`its node was last heard of at ${clock(pod.staleSince)}`, "bad") : ""],
    badge(podStatus(pod), KINDS[pod.status]),
    pod.node,
    pod.requested,
    perCard(pod.gpus, "usedMiB", memory),
    perCard(pod.gpus, "usedCores", percent),
    pod.idleSeconds ? duration(pod.idleSeconds) : "",
  ];
}

/** A number for each of a pod's cards, as the pod asks for it: "20 %", or "0: 20 %, 1: 15 %" of several cards. */
function perCard(grants, name, write) {
  const cards = new Map();
  for (const grant of grants) {
    const before = cards.get(grant.uuid) ?? { index: grant.index, amount: null };
    const amount = grant[name] === null ? before.amount : (before.amount ?? 0) + grant[name];
    cards.set(grant.uuid, { ...before, amount });
  }
  const written = [...cards.values()].map(({ index, amount }) => (cards.size > 1 ? `${index}: ${write(amount)}` : write(amount)));
  return written.join(", ") || write(null);
}
