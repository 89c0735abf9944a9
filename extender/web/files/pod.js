// One pod: what it has, or why it waits and what would help.

import * as api from "./api.js";
import { badge, element, nearestFit, show, table } from "./dom.js";
import { counted, memory, percent, podStatus, since } from "./format.js";

const GRANTS = [["Container", ""], ["Card", "name"], ["Memory", "number"], ["In use", "number"], ["Time", "number"], ["Used", "number"]];
const REASONS = [["Nodes", "number"], ["Reason", ""], ["In words", "text"]];
const NODES = [["Node", "name"], ["Verdict", "text"], ["Cards", "text"]];

export const title = (parameters) => parameters.join("/");

export function open(root, [namespace, name]) {
  const content = element("div");
  root.append(element("h1", {}, `${namespace}/${name}`), content);
  return async () => {
    const path = `pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    const found = await api.get(`${path}/explain`);
    show(content, ...(found.pod.node ? placed(found) : waiting(found)));
  };
}

function facts(pod) {
  const shown = [
    ["Status", badge(podStatus(pod))],
    ["Asks for", pod.requested],
    ["Compute policy", pod.computePolicy || "the default"],
    ["Priority", String(pod.priority)],
    ...(pod.node ? [["Node", pod.node]] : []),
    ...pod.problems.map((each) => ["Problem", element("span", { class: "error" }, each)]),
  ];
  return element("dl", {}, shown.map(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]));
}

function placed({ pod, message }) {
  const rows = pod.gpus.map((each) => [
    each.container,
    element("span", { title: each.uuid }, `card ${each.index}`),
    each.whole ? "whole card" : memory(each.memoryMiB),
    memory(each.usedMiB),
    each.whole ? "100 %" : each.cores ? percent(each.cores) : "no guarantee",
    percent(each.usedCores),
  ]);
  return [message ? element("p", { class: "message" }, message) : "", facts(pod), table(GRANTS, rows, "It has no card.")];
}

function waiting(found) {
  const { pod, message, waitsSince, advice, reasons, nearest, nodes, nodesLeftOut, lastDecision } = found;
  const tried = lastDecision ? `, looked at ${lastDecision.attempts} times, last ${since(lastDecision.time)} ago` : "";
  return [
    element("p", { class: "message" }, message),
    waitsSince ? element("p", {}, `Waits for ${since(waitsSince)}${tried}.`) : "",
    facts(pod),
    nearest ? element("p", {}, nearestFit(nearest)) : "",
    advice.length ? element("h2", {}, "What would help") : "",
    element("ul", {}, advice.map((each) => element("li", {}, each.text, " ", badge(each.by)))),
    reasons.length ? [element("h2", {}, "Why the nodes refuse"), table(REASONS, reasons.map((each) => [each.nodes, each.reason, each.text]), "")] : "",
    nodes.length ? [element("h2", {}, "Nodes"), table(NODES, nodes.map(verdict), "")] : "",
    nodesLeftOut ? element("p", {}, `${counted(nodesLeftOut, "more node")} not shown.`) : "",
  ].flat();
}

function verdict(node) {
  const isJudged = node.fits || node.cards.some((card) => card.reason);  // else something refuses the node as a whole
  const cards = node.cards.map((card) => {
    const why = card.detail || (isJudged ? "fits" : "");
    return element("li", {}, `card ${card.index}: ${why} (${memory(card.freeMiB)}, ${percent(card.freeCores)} free)`);
  });
  return [node.node, node.fits ? badge("fits", "good") : [badge(node.reason, "warning"), ` ${node.detail}`], element("ul", {}, cards)];
}
