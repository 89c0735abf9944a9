// The cards: how much of each is given away and used, and which containers have it.

import * as api from "./api.js";
import { bar } from "./bar.js";
import { badge, choice, element, field, moreButton, podLink, table } from "./dom.js";
import { clock, memory, percent, share } from "./format.js";
import { overview } from "./overview.js";

const PAGE = 100;
const COLUMNS = [["Card", "name"], ["Memory", "bar-cell"], ["Time", "bar-cell"], ["Containers", ""], ["", "actions"]];
const STATES = {
  all: ["all", {}],
  free: ["with room", { minFreeMiB: 1024, cordoned: false }],
  unhealthy: ["unhealthy", { healthy: false }],
  cordoned: ["cordoned", { cordoned: true }],
};

export const title = () => "Cards";

export function open(root) {
  let limit = PAGE;
  let state = "all";
  const [label, node] = field("Node", { type: "search", placeholder: "every node", change: () => load() });
  const numbers = element("div");
  const list = element("div");
  const options = Object.entries(STATES).map(([name, [text]]) => [name, text]);
  root.append(
    element("h1", {}, "Cards"),
    numbers,
    element("div", { class: "controls" }, label, choice("Show", options, state, (chosen) => {
      state = chosen;
      load();
    })),
    list,
  );

  async function load() {
    const query = { ...STATES[state][1], node: node.value.trim(), sort: "node,index", limit };
    const [summary, page] = await Promise.all([api.summary(), api.get("gpus", query)]);
    numbers.replaceChildren(...overview(summary));
    const rows = page.items.flatMap((card, index) => [
      card.node === page.items[index - 1]?.node ? [] : [heading(card.node)],
      row(card, load),
    ].flat());
    list.replaceChildren(
      table(COLUMNS, rows, "No card is like this. A node appears here when its device plugin has reported its cards."),
      moreButton(page, limit, (rows) => {
        limit = rows;
        load();
      }),
    );
  }
  return load;
}

function heading(node) {
  return element("tr", { class: "group" }, element("th", { colspan: COLUMNS.length, scope: "rowgroup" }, node));
}

function row(card, load) {
  return element("tr", {},
    element("td", { class: "name" }, element("span", { title: card.uuid }, `${card.index}  ${card.model}${card.unified ? " (unified)" : ""}`), " ", states(card)),
    element("td", { class: "bar-cell" }, memoryBar(card)),
    element("td", { class: "bar-cell" }, timeBar(card)),
    element("td", {}, containers(card)),
    element("td", { class: "actions" }, card.countsOn ? `counts on ${card.countsOn}` : cordonButton(card, load)));
}

function states(card) {
  return [
    card.healthy ? "" : badge(card.reason || "unhealthy", "bad"),
    card.staleSince ? badge(`last heard of at ${clock(card.staleSince)}`, "bad") : "",
    card.cordoned ? badge("cordoned", "warning") : "",
    card.heldWhole ? badge("whole", "plain") : "",
  ];
}

function memoryBar(card) {
  const parts = card.pods.map((each) => [each.whole ? card.memoryMiB : each.memoryMiB, "given"]);
  const known = parts.reduce((sum, [amount]) => sum + amount, 0);
  const others = Math.max(0, card.allocatedMiB - known); // of namespaces that the user may not see
  const used = card.usedMiB === null ? "" : `, ${memory(card.usedMiB)} in use`;
  return [bar([...parts, [others, "given others"]], card.memoryMiB, card.usedMiB),
    element("small", {}, `${memory(card.allocatedMiB)} of ${memory(card.memoryMiB)}${used}`)];
}

function timeBar(card) {
  const used = card.usedCores === null ? "" : `, ${percent(card.usedCores)} used`;
  const given = card.heldWhole ? 100 : card.allocatedCores;
  return [bar([[given, "given"]], 100, card.usedCores), element("small", {}, `${percent(given)} guaranteed${used}`)];
}

function containers(card) {
  if (!card.pods.length) return card.podCount ? `${card.podCount} of others` : "";
  return element("ul", { class: "tenants" }, card.pods.map((each) => {
    const has = share(each.whole, each.memoryMiB, each.cores);
    return element("li", {}, podLink(each.namespace, each.pod), element("small", {}, ` ${each.container}: ${has}`));
  }));
}

function cordonButton(card, load) {
  const action = card.cordoned ? "uncordon" : "cordon";
  const click = async (event) => {
    event.target.disabled = true;
    try {
      await api.post(`gpus/${encodeURIComponent(card.uuid)}/${action}`);
      await load();
    } catch (problem) {
      event.target.replaceWith(element("span", { class: "error", role: "alert" }, problem.message));
    }
  };
  const text = card.cordoned ? "Take new containers again" : "No new containers; running ones stay";
  return element("button", { click, title: text }, action === "cordon" ? "Cordon" : "Uncordon");
}
