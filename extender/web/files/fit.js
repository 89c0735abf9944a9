// Asks where pods would be placed that do not exist yet. Nothing is changed.

import * as api from "./api.js";
import { element, field, nearestFit, table } from "./dom.js";
import { counted, percent } from "./format.js";

const COLUMNS = [["Pod", "number"], ["Asks for", ""], ["Node", "name"], ["Cards", ""], ["Why not", "text"]];
const HINT = "Say what the pods need, and ask.";
const POLICIES = ["", "binpack", "spread", "fragmentation", "fgd", "topology", "power"];
const COMPARED = [["Policy", "name"], ["Pods that fit", "number"], ["Nodes used", "number"], ["Empty cards then", "number"], ["Free and unusable then", "number"]];

export const title = () => "Will it fit?";

export function open(root) {
  const kinds = []; // of pods, in the order in which they are placed
  const list = element("div");
  const [namespaceLabel, namespace] = field("Namespace", { value: "default" });
  const outcome = element("div", { "aria-live": "polite", class: "outcome" }, element("p", { class: "empty" }, HINT));
  let asked = 0;
  const simulated = (policy) => {
    const annotations = policy ? { "vgpu.io/node-policy": policy, "vgpu.io/gpu-policy": policy } : {};
    return api.post("simulate", { pods: kinds.map(({ entry }, index) => entry(`pod-${index + 1}`, namespace.value.trim(), annotations)) });
  };
  const changed = () => {
    asked += 1; // an answer under way is about other pods
    outcome.replaceChildren(element("p", { class: "empty" }, HINT));
  };
  const add = () => {
    const made = kindOfPods(kinds.length === 0, () => {
      kinds.splice(kinds.indexOf(made), 1);
      changed();
    });
    kinds.push(made);
    list.append(made.root);
  };
  const ask = async (question) => {
    asked += 1;
    const own = asked;
    outcome.replaceChildren(element("p", { class: "empty" }, "Asking…"));
    let shown;
    try {
      shown = await question();
    } catch (problem) {
      const fields = (problem.fields ?? []).map((wrong) => element("li", {}, `${wrong.field}: ${wrong.detail}`));
      shown = [element("p", { class: "error", role: "alert" }, problem.message), element("ul", {}, fields)];
    }
    if (own === asked) outcome.replaceChildren(...shown.flat()); // else it answers another question
  };
  const submit = (event) => {
    event.preventDefault();
    ask(async () => answer(await simulated(""), kinds.length > 1));
  };
  const comparison = async () => {
    const found = []; // one after the other: the REST simulates one question of a caller at a time
    for (const policy of POLICIES) found.push(await simulated(policy));
    return compared(found);
  };
  const compare = () => form.reportValidity() && ask(comparison);
  const another = () => {
    add();
    changed();
    kinds.at(-1).root.querySelector("input").select(); // with the focus
  };
  add();
  const form = element("form", { class: "fitform", submit, input: changed }, list, namespaceLabel,
    element("div", { class: "controls" }, element("button", {}, "Ask"),
      element("button", { type: "button", click: another }, "Add another kind"),
      element("button", { type: "button", click: compare }, "Compare policies")));
  root.append(
    element("h1", {}, "Will it fit?"),
    element("p", {}, "Where would these pods be placed now? Nothing is changed. For whole manifests: ", element("code", {}, "vgpu simulate -f FILE"), "."),
    element("div", { class: "fit" }, form, outcome),
  );
  return async () => {};
}

/** Return the fields of one kind of pods, and `entry`, which returns what they say. The first kind cannot be removed. */
function kindOfPods(isFirst, onRemove) {
  const [memoryLabel, memory] = field("Memory of each card, GiB", { type: "number", min: "0", step: "any", value: "8" });
  const [coresLabel, cores] = field("Time, % of a card", { type: "number", min: "0", max: "100", value: "0" });
  const [cardsLabel, cards] = field("Cards", { type: "number", min: "1", max: "16", value: "1" });
  const [countLabel, count] = field("Pods", { type: "number", min: "1", max: "1000", value: "1" });
  const remove = () => {
    root.remove();
    onRemove();
  };
  const root = element("fieldset", {}, element("legend", {}, isFirst ? "What each pod asks for" : "What each of another kind asks for"),
    memoryLabel, coresLabel, cardsLabel, countLabel, isFirst ? "" : element("button", { type: "button", click: remove }, "Remove this kind"));
  const entry = (name, namespace, annotations) => {
    const limits = {
      "vgpu.io/gpu": cards.value,
      "vgpu.io/gpu-mem": String(Math.round(Number(memory.value) * 1024)),
      ...(Number(cores.value) ? { "vgpu.io/gpu-cores": cores.value } : {}),
    };
    const pod = { metadata: { name, namespace, annotations }, spec: { containers: [{ name: "main", resources: { limits } }] } };
    return { pod, count: Number(count.value) };
  };
  return { root, entry };
}

/** Return what each packing policy would do with the pods. */
function compared(found) {
  const rows = found.map(({ placed, notPlaced, pods, after }, index) => [
    POLICIES[index] || "the cluster's default", `${placed} of ${placed + notPlaced}`,
    new Set(pods.map((pod) => pod.node).filter(Boolean)).size, after.emptyGpus, percent(after.fragmentedPercent),
  ]);
  return [element("p", { class: "message" }, "With each packing policy, as vgpu.io/node-policy and vgpu.io/gpu-policy:"), table(COMPARED, rows, "")];
}

function answer({ placed, notPlaced, before, after, pods }, hasKinds) {
  const rows = pods.slice(0, 200).map((each) => [
    each.number,
    each.requested,
    each.node,
    each.gpus.map((grant) => `card ${grant.index}`).join(", "),
    each.node ? "" : [each.reasons.map((reason) => `${reason.text} (${counted(reason.nodes, "node")})`).join("; "), each.nearest ? element("small", {}, " ", nearestFit(each.nearest)) : ""],
  ]);
  const isShown = (name) => (name !== "Asks for" || hasKinds) && (name !== "Why not" || notPlaced > 0);
  const shown = COLUMNS.map(([name]) => isShown(name));
  return [
    element("p", { class: "message" }, verdict(placed, placed + notPlaced)),
    element("p", {}, `Allocated: ${percent(before.allocatedPercent)} now, ${percent(after.allocatedPercent)} with these pods. `,
      `Empty cards: ${before.emptyGpus} now, ${after.emptyGpus} then.`),
    table(COLUMNS.filter((_, index) => shown[index]), rows.map((row) => row.filter((_, index) => shown[index])), ""),
  ];
}

function verdict(placed, all) {
  if (all === 1) return placed ? "The pod fits." : "The pod does not fit.";
  return placed === all ? `All ${all} pods fit.` : `${placed} of ${all} pods fit.`;
}
