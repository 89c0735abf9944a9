// The cards: how much of each is given away and used, and which containers have it.

import * as api from "./api.js";
import { bar } from "./bar.js";
import { CardMap, closedBecause } from "./cardmap.js";
import { badge, choice, element, field, moreButton, podLink, table } from "./dom.js";
import { clock, memory, percent, share } from "./format.js";
import { overview } from "./overview.js";

const PAGE = 100;
const ALL = 1000; // rows of one request for the map
const MAP_FIELDS = "uuid,node,index,model,memoryMiB,allocatedMiB,allocatedCores,heldWhole,healthy,reason,nodeReason,countsOn,cordoned,podCount,usedCores,staleSince";
const LARGE_MS = 10000; // between two loads of a map of more than one request
const COLUMNS = [["Card", "name"], ["Memory", "bar-cell"], ["Time", "bar-cell"], ["Containers", ""], ["", "actions"]];
const STATES = {
  all: ["all", {}, () => true],
  free: ["with room", { minFreeMiB: 1024, cordoned: false }, (card) => card.healthy && !closedBecause(card) && !card.heldWhole && card.allocatedMiB < card.memoryMiB],
  used: ["in use", {}, (card) => card.podCount > 0],
  closed: ["closed", {}, (card) => Boolean(closedBecause(card))],
  unhealthy: ["unhealthy", { healthy: false }, (card) => !card.healthy],
  cordoned: ["cordoned", { cordoned: true }, (card) => card.cordoned],
};
const kept = { shape: "map", state: "all", node: "", model: "", namespace: "", opened: "" }; // while the page is open

export const title = () => "Cards";

export function open(root) {
  let limit = PAGE;
  let cards = null;
  let loadedAt = 0;
  const typed = (name) => (event) => {
    kept[name] = event.target.value.trim();
    if (kept.shape === "list" || name === "namespace") load(true);
    else draw();
  };
  const [label] = field("Node", { type: "search", placeholder: "part of a name", value: kept.node, input: typed("node") });
  const [modelLabel] = field("Model", { type: "search", placeholder: "part of a name", value: kept.model, input: typed("model") });
  const [spaceLabel] = field("Namespace", { type: "search", placeholder: "every namespace", value: kept.namespace, change: typed("namespace") });
  const numbers = element("div");
  const list = element("div");
  const count = element("p", { class: "empty", role: "status" });
  const keys = element("p", { class: "keys" }, "Left: memory given. Right: time given. ", element("span", {}, element("i", { class: "key closed" }), " closed"), element("span", {}, element("i", { class: "key ill" }), " ill"));
  const map = new CardMap((uuid) => {
    kept.opened = uuid;
    location.hash = `#/cards/${encodeURIComponent(uuid)}`;
  });
  let inNamespace = null;
  const options = Object.entries(STATES).map(([name, [text]]) => [name, text]);
  root.append(
    element("h1", {}, "Cards"),
    numbers,
    element("div", { class: "controls" },
      label, modelLabel, spaceLabel,
      choice("Show", options, kept.state, (chosen) => {
        kept.state = chosen;
        load(true);
      }),
      choice("As", [["map", "map"], ["list", "list"]], kept.shape, (chosen) => {
        kept.shape = chosen;
        load(true);
      })),
    list,
  );

  async function load(isAsked = false) {
    numbers.replaceChildren(...overview(await api.summary()));
    if (kept.shape === "list") await loadList();
    else await loadMap(isAsked);
  }

  async function loadMap(isAsked) {
    if (!list.contains(map.root)) list.replaceChildren(keys, map.root, count);
    const isLarge = cards !== null && cards.length >= ALL;
    if (!isLarge || Date.now() - loadedAt > LARGE_MS) {
      cards = await allCards();
      loadedAt = Date.now();
    }
    if (!isLarge || isAsked) inNamespace = kept.namespace ? await cardsOf(kept.namespace) : null;
    const isFirst = !map.tiles.size;
    draw();
    if (isFirst && kept.opened) map.select(kept.opened, true);
  }

  function draw() {
    if (!cards) return;
    const has = (text, part) => text.toLowerCase().includes(part.toLowerCase());
    const shown = cards.filter((card) => has(card.node, kept.node) && has(card.model, kept.model)
      && STATES[kept.state][2](card) && (!inNamespace || inNamespace.has(card.uuid)));
    map.update(shown);
    count.textContent = shown.length ? `${shown.length} of ${cards.length} cards` : "No card is like this. A node appears here when its device plugin has reported its cards.";
  }

  async function loadList() {
    const page = await listed(limit);
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

/** Return the rows of the list: those of the map, where filters are about parts of names. */
async function listed(limit) {
  const query = { ...STATES[kept.state][1], sort: "node,index", limit: kept.node || kept.model || kept.namespace || kept.state !== "all" ? ALL : limit };
  const page = await api.get("gpus", query);
  const has = (text, part) => text.toLowerCase().includes(part.toLowerCase());
  const items = page.items.filter((card) => has(card.node, kept.node) && has(card.model, kept.model) && STATES[kept.state][2](card)
    && (!kept.namespace || card.pods.some((held) => held.namespace === kept.namespace)));
  return { ...page, items };
}

async function allCards() {
  const found = [];
  let cursor = "";
  do {
    const page = await api.get("gpus", { fields: MAP_FIELDS, sort: "node,index", limit: ALL, cursor });
    found.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

/** Return the cards that the pods of a namespace have. */
async function cardsOf(namespace) {
  const page = await api.get("pods", { namespace, fields: "gpus", limit: ALL });
  return new Set(page.items.flatMap((pod) => pod.gpus.map((held) => held.uuid)));
}

function heading(node) {
  return element("tr", { class: "group" }, element("th", { colspan: COLUMNS.length, scope: "rowgroup" }, node));
}

function row(card, load) {
  return element("tr", {},
    element("td", { class: "name" }, element("a", { title: card.uuid, href: `#/cards/${encodeURIComponent(card.uuid)}` }, `${card.index}  ${card.model}${card.unified ? " (unified)" : ""}`), " ", states(card)),
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
