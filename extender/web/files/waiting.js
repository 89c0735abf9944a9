// Pods that wait for a card: each reason once, with the pods that wait for it, since when, and what would help.

import * as api from "./api.js";
import { badge, element, nearestFit, podLink, table, updateChildren } from "./dom.js";
import { clock, counted, duration } from "./format.js";

const COLUMNS = [["Pod", "name"], ["Asks for", ""], ["Waits", ""], ["What is missing", "text"]];
const MOST = 200;

export const title = () => "Waiting pods";

export function open(root) {
  const list = element("div", {}, element("p", { class: "empty" }, "Loading…"));
  root.append(element("h1", {}, "Waiting pods"), list);
  return async () => {
    const page = await api.get("pending", { limit: MOST });
    const now = Date.now();
    updateChildren(list, page.items.length ? [element("p", {}, "A pod's own page says what would help."), ...byReason(page.items).map((pods) => group(pods, now))] : element("p", { class: "empty" },
      "No pod waits for a card. Pods appear here when no node can take them."),
    page.nextCursor ? element("p", {}, `More than ${MOST} pods wait: `, element("code", {}, "vgpu get pending -A"), " shows all.") : "");
  };
}

/** Return the pods by the reason that most nodes have, those with most pods first, in them the one that waits longest first. */
function byReason(pods) {
  const groups = new Map();
  for (const pod of pods) {
    const name = pod.reasons?.[0]?.reason ?? "";
    groups.set(name, [...(groups.get(name) ?? []), pod]);
  }
  for (const group of groups.values()) group.sort((one, other) => (one.waitsSince < other.waitsSince ? -1 : 1));
  return [...groups.values()].sort((one, other) => other.length - one.length);
}

function group(pods, now) {
  const reason = pods[0].reasons?.[0];
  const rows = pods.map((pod) => [
    podLink(pod.namespace, pod.name),
    pod.requested,
    pod.waitsSince ? element("time", { datetime: pod.waitsSince, title: clock(pod.waitsSince) }, duration((now - Date.parse(pod.waitsSince)) / 1000)) : "",
    missing(pod, reason),
  ]);
  return element("section", { "data-key": `reason ${reason?.reason ?? ""}` },
    reason ? element("h2", {}, `${reason.text[0].toUpperCase()}${reason.text.slice(1)} `, badge(reason.reason, "warning"), element("small", {}, ` ${counted(pods.length, "pod")}`)) : "",
    table(COLUMNS, rows, ""));
}

/** Return what the heading does not say of a pod: its gang, the scheduler's words, other reasons, and the nearest fit. */
function missing(pod, reason) {
  const said = reason && pod.message.split("; ").filter((part) => !part.startsWith("nearest fit ") && !part.startsWith("needs "));
  const own = said?.filter((part) => !part.endsWith(`(${reason.reason})`));
  const refused = reason && !own.some((part) => part.startsWith("gang ")) ? [`refused by ${counted(reason.nodes, "node")}`] : [];
  const words = reason ? `${[...refused, ...own].join("; ")}. ` : `${pod.message} `;
  return [words[0].toUpperCase() + words.slice(1), pod.nearest ? nearestFit(pod.nearest) : ""];
}
