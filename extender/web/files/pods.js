// Pods that ask for GPUs.

import * as address from "./address.js";
import * as api from "./api.js";
import { badge, choice, element, field, moreButton, podLink, table, updateChildren } from "./dom.js";
import { clock, duration, memory, percent, podStatus, STATUS_KINDS } from "./format.js";

const PAGE = 100;
const COLUMNS = [
  ["Pod", "name"], ["Status", ""], ["Node", "name"], ["Asks for", ""], ["Memory in use", "number"], ["Time used", "number"], ["Idle", "number"],
];
const STATUSES = ["", "Pending", "Starting", "Running", "Terminating", "Ended"];
const DEFAULTS = { namespace: "", selector: "", status: "" };

export const title = () => "Pods";

export function open(root, _, reload) {
  const chosen = address.chosen(DEFAULTS);
  let limit = PAGE;
  const list = element("div", {}, element("p", { class: "empty" }, "Loading…"));
  const choose = (name) => (value) => {
    chosen[name] = value;
    address.keep(chosen, DEFAULTS);
    reload();
  };
  const written = (name) => (event) => choose(name)(event.target.value.trim());
  const [namespaceLabel] = field("Namespace", { type: "search", placeholder: "every namespace", value: chosen.namespace, change: written("namespace") });
  const [selectorLabel] = field("Labels", { type: "search", placeholder: "app=train", value: chosen.selector, change: written("selector") });
  root.append(
    element("h1", {}, "Pods"),
    element("div", { class: "controls" }, namespaceLabel, selectorLabel,
      choice("Status", STATUSES.map((status) => [status, status || "any"]), chosen.status, choose("status"))),
    list,
  );

  async function load() {
    const page = await api.get("pods", { ...chosen, sort: "namespace,name", limit });
    updateChildren(list,
      table(COLUMNS, page.items.map(row), "No pod that asks for a GPU matches. A pod asks for one by limits such as vgpu.io/gpu-mem."),
      moreButton(page, limit, (rows) => {
        limit = rows;
        reload();
      }),
    );
  }
  return load;
}

function row(pod) {
  return [
    [podLink(pod.namespace, pod.name), " ", pod.problems.length ? badge("problem", "bad") : "",
      pod.staleSince ? badge(`its node was last heard of at ${clock(pod.staleSince)}`, "bad") : ""],
    badge(podStatus(pod), STATUS_KINDS[pod.status]),
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
