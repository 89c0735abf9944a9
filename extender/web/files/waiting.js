// Pods that wait for a card, each with the reason in one sentence.

import * as api from "./api.js";
import { element, nearestFit, podLink, show, table } from "./dom.js";
import { since } from "./format.js";

const COLUMNS = [["Pod", "name"], ["Asks for", ""], ["Waits", ""], ["Why", "text"]];

export const title = () => "Waiting pods";

export function open(root) {
  const list = element("div");
  root.append(element("h1", {}, "Waiting pods"), list);
  return async () => {
    const page = await api.get("pending", { limit: 200 });
    const rows = page.items.map((pod) => [
      podLink(pod.namespace, pod.name),
      pod.requested,
      since(pod.waitsSince),
      [pod.message, pod.nearest ? element("small", {}, " ", nearestFit(pod.nearest)) : ""],
    ]);
    show(list,
      table(COLUMNS, rows, "No pod waits for a card."),
      page.nextCursor ? element("p", {}, "More pods wait: vgpu get pending -A shows all.") : "",
    );
  };
}
