// Asks where pods would be placed that do not exist yet. Nothing is changed.

import * as api from "./api.js";
import { element, field, nearestFit, table } from "./dom.js";
import { counted, percent } from "./format.js";

const COLUMNS = [["Pod", "number"], ["Node", "name"], ["Cards", ""], ["Why not", "text"]];

export const title = () => "Will it fit?";

export function open(root) {
  const [memoryLabel, memory] = field("Memory of each card, GiB", { type: "number", min: "0", step: "any", value: "8", size: 6 });
  const [coresLabel, cores] = field("Time, % of a card", { type: "number", min: "0", max: "100", value: "0", size: 4 });
  const [cardsLabel, cards] = field("Cards", { type: "number", min: "1", max: "16", value: "1", size: 3 });
  const [countLabel, count] = field("Pods", { type: "number", min: "1", max: "1000", value: "1", size: 4 });
  const [namespaceLabel, namespace] = field("Namespace", { value: "default", size: 12 });
  const outcome = element("div", { "aria-live": "polite" });
  const ask = async (event) => {
    event.preventDefault();
    const limits = {
      "vgpu.io/gpu": cards.value,
      "vgpu.io/gpu-mem": String(Math.round(Number(memory.value) * 1024)),
      ...(Number(cores.value) ? { "vgpu.io/gpu-cores": cores.value } : {}),
    };
    const pod = { metadata: { name: "pod", namespace: namespace.value.trim() }, spec: { containers: [{ name: "main", resources: { limits } }] } };
    try {
      outcome.replaceChildren(...answer(await api.post("simulate", { pods: [{ pod, count: Number(count.value) }] })));
    } catch (problem) {
      const fields = (problem.fields ?? []).map((each) => element("li", {}, `${each.field}: ${each.detail}`));
      outcome.replaceChildren(element("p", { class: "error", role: "alert" }, problem.message), element("ul", {}, fields));
    }
  };
  root.append(
    element("h1", {}, "Will it fit?"),
    element("p", {}, "Where would these pods be placed now? Nothing is changed. For whole manifests: vgpu simulate -f FILE."),
    element("form", { class: "controls", submit: ask }, memoryLabel, coresLabel, cardsLabel, countLabel, namespaceLabel,
      element("button", {}, "Ask")),
    outcome,
  );
  return async () => {};
}

function answer({ placed, notPlaced, before, after, pods }) {
  const rows = pods.slice(0, 200).map((each) => [
    each.number,
    each.node,
    each.gpus.map((grant) => `card ${grant.index}`).join(", "),
    each.node ? "" : [each.reasons.map((reason) => `${reason.text} (${counted(reason.nodes, "node")})`).join("; "), each.nearest ? element("small", {}, " ", nearestFit(each.nearest)) : ""],
  ]);
  return [
    element("p", { class: "message" }, verdict(placed, placed + notPlaced)),
    element("p", {}, `Allocated: ${percent(before.allocatedPercent)} now, ${percent(after.allocatedPercent)} with these pods. `,
      `Empty cards: ${before.emptyGpus} now, ${after.emptyGpus} then.`),
    table(COLUMNS, rows, ""),
  ];
}

function verdict(placed, all) {
  if (all === 1) return placed ? "The pod fits." : "The pod does not fit.";
  return placed === all ? `All ${all} pods fit.` : `${placed} of ${all} pods fit.`;
}
