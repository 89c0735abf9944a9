// One pod: its life, its cards and who else is on them, what it used, or why it waits and what would help.

import * as address from "./address.js";
import * as api from "./api.js";
import { stateBadges } from "./card.js";
import { chart } from "./charts.js";
import { badge, element, nearestFit, podLink, table, updateChildren } from "./dom.js";
import { CAUSES, chosenTime, COLORS, waited } from "./figures.js";
import { counted, inGroup, memory, percent, podStatus, STATUS_KINDS, share, since } from "./format.js";
import { lifeline } from "./lifeline.js";

const CHARTS_MS = 50000; // nodes report about once a minute, and so often the page is read again
const MOST_CHARTS = 4; // containers on cards
const GRANTS = [["Container", ""], ["Card", "name"], ["Memory", "number"], ["In use", "number"], ["Time", "number"], ["Used", "number"]];
const REASONS = [["Nodes", "number"], ["Reason", ""], ["In words", "text"]];
const NODES = [["Node", "name"], ["Verdict", "text"], ["Cards", "text"]];

export const title = (parameters) => parameters.join("/");

export function open(root, [namespace, name], reload) {
  const content = element("div");
  const life = element("div");
  const cards = element("div");
  const charts = element("div", { class: "charts" });
  const more = element("pre", { tabindex: "0", role: "region", "aria-label": "Commands" });
  let drawnAt = 0;
  const [timeHeading, time] = chosenTime(() => {
    drawnAt = 0;
    reload();
  });
  root.append(
    element("p", {}, element("a", { href: address.lastOf("#/pods") }, "← All pods")),
    element("h1", { class: "podname", title: `${namespace}/${name}` }, `${namespace}/${name}`),
    content, element("h2", {}, "Time line"), life, cards, timeHeading, charts,
    element("h2", {}, "On the command line"), more,
  );
  const path = `pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

  async function load(changes = null) {
    if (changes?.length && !concerns(changes, namespace, name)) return;
    const found = await explanation(path);
    if (found?.pod.gang) found.pod.ranks = await ranksOf(found.pod);
    updateChildren(content, found ? (found.pod.node ? placedPod(found) : waitingPod(found)) : unknownPod());
    more.textContent = commands(namespace, name, found?.pod).join("\n");
    const [entries, neighbours] = await Promise.all([historyEntries(namespace, name, found?.pod.uid), cardsOf(found?.pod)]);
    updateChildren(life, typeof entries === "string" ? element("p", { class: "empty" }, entries) : lifeline(found?.pod, found?.waitsSince, entries));
    updateChildren(cards, neighbours.length ? element("h2", {}, "Cards") : "", neighbours.map((card) => cardWithNeighbours(card, namespace, name)));
    if (Date.now() - drawnAt > CHARTS_MS) {
      drawnAt = Date.now();
      if (!(await showCharts(charts, path, found?.pod, time()))) drawnAt = 0; // the next report may be the first one
    }
  }
  return load;
}

/** Whether a change is about the pod, or about a card: it may be the pod's, or make room for it. */
function concerns(changes, namespace, name) {
  return changes.some(({ kind, object }) => kind === "gpu" || (object.namespace === namespace && object.name === name));
}

/** Return the other pods of a pod's gang, the first 64 by name. */
async function ranksOf({ namespace, name, gang }) {
  const fields = "namespace,name,node,gpus";
  const found = await api.get("pods", { namespace, gang, fields, sort: "name", limit: 65 }).catch(() => ({ items: [] }));
  return found.items.filter((other) => other.name !== name).slice(0, 64);
}

async function explanation(path) {
  try {
    return await api.get(`${path}/explain`);
  } catch (problem) {
    if (problem.status === 404) return null; // it has ended: the history may know it
    throw problem;
  }
}

/** Return the pod's entries of the history, or why there are none. */
async function historyEntries(namespace, name, uid) {
  try {
    return (await api.get("history", { namespace, ...(uid ? { uid } : { name }), since: "31d", limit: 200 })).items;
  } catch (problem) {
    return `There is no time line: ${problem.message}.`;
  }
}

/** Return the cards of a pod with the containers on them; what is known of a grant where the user may not see cards. */
async function cardsOf(pod) {
  const grants = new Map((pod?.gpus ?? []).map((grant) => [grant.uuid, grant]));
  return Promise.all([...grants.values()].map((grant) => api.get(`gpus/${encodeURIComponent(grant.uuid)}`).catch((problem) => {
    if (problem.status === 403 || problem.status === 404) return { ...grant, node: pod.node, pods: null };
    throw problem;
  })));
}

function cardWithNeighbours(card, namespace, name) {
  const heading = element("strong", {}, card.pods ? element("a", { href: `#/cards/${encodeURIComponent(card.uuid)}` }, `${card.node}, card ${card.index}`) : `${card.node}, card ${card.index}`);
  const facts = element("p", { class: "facts" }, heading, card.model ? `, ${card.model}, ${memory(card.memoryMiB)} ` : " ", element("code", {}, card.uuid), " ", card.pods ? stateBadges(card) : "");
  if (!card.pods) return element("div", {}, facts, element("p", { class: "empty" }, "Who else is on it is shown to those who may list gpunodes."));
  const others = card.pods.filter((held) => held.namespace !== namespace || held.pod !== name);
  const seen = new Set(card.pods.map((held) => `${held.namespace}/${held.pod}`)).size;
  const hidden = card.podCount - seen;
  return element("div", { "data-key": card.uuid }, facts,
    others.length ? element("p", {}, "Beside it on this card:") : "",
    others.length ? element("ul", { class: "held", "aria-label": "Neighbours" }, others.map((held) => element("li", { "data-key": `${held.namespace}/${held.pod}/${held.container}` }, podLink(held.namespace, held.pod),
      element("small", {}, ` ${held.container}: ${share(held.whole, held.memoryMiB, held.cores)}${inGroup(held)}; uses ${memory(held.usedMiB)}, ${percent(held.usedCores)}`)))) : "",
    hidden > 0 ? element("p", { class: "empty" }, `${counted(hidden, "pod")} of namespaces that you may not see.`) : "",
    others.length || hidden > 0 ? "" : element("p", { class: "empty" }, "The pod is alone on this card."));
}

function facts(pod) {
  const shown = [
    ["Status", badge(podStatus(pod), STATUS_KINDS[pod.status])],
    ["Asks for", pod.requested],
    ["Compute policy", pod.computePolicy || defaultPolicy(pod)],
    ...(pod.spaceGroup ? [["Group in space", pod.spaceGroup]] : []),
    ...(pod.gang ? [["Gang", element("span", {}, pod.gang, ...(pod.ranks ?? []).map(rank))]] : []),
    ["Priority", String(pod.priority)],
    ...(pod.node ? [["Node", pod.node]] : []),
    ...pod.problems.map((problem) => ["Problem", element("span", { class: "error" }, problem)]),
  ];
  return element("dl", {}, shown.map(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]));
}

/** Return one other pod of the gang, with its cards. */
function rank({ namespace, name, node, gpus }) {
  const cards = [...new Set(gpus.map(({ index }) => index))].sort((a, b) => a - b).join(", ");
  return element("small", { "data-key": name }, " · ", podLink(namespace, name), node ? ` ${node}, card ${cards}` : " waits");
}

/** Return the policy of a pod that names none. */
function defaultPolicy({ cores, requested }) {
  if (cores && requested.includes("; ")) return "default: fixed with gpu-cores, else burst"; // of several containers, some may ask for time
  return cores ? "fixed (the default with gpu-cores)" : "burst (the default without gpu-cores)";
}

function unknownPod() {
  return element("p", { class: "message" },
    "vgpushare has no pod of this name: it does not exist any more, or it asks for no GPU by a name that vgpushare knows; vgpu explain says which. What the history knows of it is below.");
}

function placedPod({ pod, message }) {
  const rows = pod.gpus.map((grant) => [
    grant.container,
    element("span", { title: grant.uuid }, `card ${grant.index}`),
    grant.whole ? "whole card" : memory(grant.memoryMiB),
    memory(grant.usedMiB),
    grant.whole ? "100\u00a0%" : grant.cores ? percent(grant.cores) : "no guarantee",
    percent(grant.usedCores),
  ]);
  return [message ? element("p", { class: "message" }, message) : "", facts(pod), table(GRANTS, rows, "It has no card.")];
}

function waitingPod(found) {
  const { pod, message, waitsSince, advice, reasons, nearest, nodes, nodesLeftOut, lastDecision } = found;
  const tried = lastDecision ? `, looked at ${counted(lastDecision.attempts, "time")}, last ${since(lastDecision.time)} ago` : "";
  return [
    element("p", { class: "message" }, message),
    waitsSince ? element("p", {}, `Waits for ${since(waitsSince)}${tried}.`) : "",
    facts(pod),
    nearest ? element("p", {}, nearestFit(nearest)) : "",
    advice.length ? element("h2", {}, "What would help") : "",
    element("ul", {}, advice.map((change) => element("li", {}, change.text, " ", badge(change.by)))),
    reasons.length ? [element("h2", {}, "Why the nodes refuse"), table(REASONS, reasons.map((refusal) => [refusal.nodes, refusal.reason, refusal.text]), "")] : "",
    nodes.length ? [element("h2", {}, "Nodes"), table(NODES, nodes.map(verdict), "")] : "",
    nodesLeftOut ? element("p", {}, `${counted(nodesLeftOut, "more node")} not shown.`) : "",
  ];
}

function verdict(node) {
  const isJudged = node.fits || node.cards.some((card) => card.reason); // else something refuses the node as a whole
  const cards = node.cards.map((card) => {
    const why = card.detail || (isJudged ? "fits" : "");
    return element("li", {}, `card ${card.index}: ${why} (${memory(card.freeMiB)}, ${percent(card.freeCores)} free)`);
  });
  return [node.node, node.fits ? badge("fits", "good") : [badge(node.reason, "warning"), ` ${node.detail}`], element("ul", {}, cards)];
}

/** Return whether anything was measured. */
async function showCharts(root, path, pod, since) {
  let found;
  try {
    found = await api.get(`${path}/series`, { since });
  } catch (problem) {
    root.replaceChildren(element("p", { class: "empty" }, `There are no charts: ${problem.message}.`));
    return false;
  }
  const period = [Date.parse(found.since), Date.parse(found.until)];
  const several = found.containers.length > 1;
  const drawn = found.containers.slice(0, MOST_CHARTS).flatMap((series) => {
    const grant = pod?.gpus.find((held) => held.uuid === series.uuid && held.container === series.container);
    const of = several ? ` (${series.container}${grant ? ` on card ${grant.index}` : ""})` : "";
    return chartsOf(series, grant, of, period);
  });
  const left = found.containers.length - MOST_CHARTS;
  root.replaceChildren(...(drawn.length ? drawn : [element("p", { class: "empty" }, "Nothing is measured yet: nodes report about once a minute.")]),
    left > 0 ? element("p", { class: "empty" }, `${counted(left, "more container")} not shown.`) : "");
  return drawn.length > 0;
}

/** Return the charts of a container on a card: what it used against its limit and its guarantee. */
function chartsOf(series, grant, of, period) {
  const times = series.untilMs;
  const level = (value) => times.map(() => value);
  const limit = grant && !grant.whole ? [{ name: "limit", values: level(grant.memoryMiB), color: "--bad", dash: true }] : [];
  const guarantee = grant?.cores ? [{ name: "guarantee", values: level(grant.cores), color: "--muted", dash: true }] : [];
  const waits = Object.entries(CAUSES).map(([cause, text], index) => ({ name: text, color: COLORS[index], values: waited([series], cause, times) }));
  return [
    chart(`Memory in use${of}`, times, [{ name: "in use", values: series.usedMiB, color: "--used", fill: true }, ...limit], memory, period, limit.length ? grant.memoryMiB : null),
    chart(`Time used${of}`, times, [{ name: "used", values: series.usedCores, color: "--used", fill: true }, ...guarantee], percent, period, 100),
    chart(`Waits of launches${of}, seconds in a minute`, times, waits, (value) => String(Math.round(value * 10) / 10), period),
  ];
}

/** The commands that say more, to copy. A name has no characters that a shell reads. */
function commands(namespace, name, pod) {
  if (!pod) return [`vgpu usage --by owner -n ${namespace}`, `kubectl get events -n ${namespace} --field-selector involvedObject.name=${name}`];
  const isPlaced = Boolean(pod.node);
  return [
    isPlaced ? `vgpu describe pod ${name} -n ${namespace}` : `vgpu explain ${namespace}/${name}`,
    isPlaced && `vgpu diagnose ${namespace}/${name}`,
    isPlaced && `vgpu top pods -n ${namespace}`,
    `kubectl describe pod ${name} -n ${namespace}    # with its events`,
    isPlaced && `kubectl logs ${name} -n ${namespace} --all-containers`,
  ].filter(Boolean);
}
