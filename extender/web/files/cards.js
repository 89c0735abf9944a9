// The cards: how much of each is allocated and used, and which containers have it.

import * as address from "./address.js";
import * as api from "./api.js";
import { bar } from "./bar.js";
import { byName, CardMap, closedBecause, keyOf } from "./cardmap.js";
import { badge, choice, element, field, podLink, suggestions, table, updateChildren } from "./dom.js";
import { clock, grouped, memory, percent, share } from "./format.js";
import { overview } from "./overview.js";

const PAGE = 100;
const ALL = 1000; // rows of one request
const NODES = 100; // named in one request
const MAP_FIELDS = "uuid,node,rack,index,model,memoryMiB,allocatedMiB,allocatedCores,heldWhole,healthy,reason,nodeReason,countsOn,cordoned,podCount,usedCores,staleSince";
const NAMESPACES_MS = 10000; // between two loads of which namespaces are on which cards
const COLUMNS = [["Card", "name"], ["Memory", "bar-cell"], ["Time", "bar-cell"], ["Containers", ""], ["Action", "actions"]];
const STATES = {
  all: { label: "all", matches: () => true },
  free: { label: "with room", matches: (card) => card.healthy && !closedBecause(card) && !card.heldWhole && card.allocatedMiB < card.memoryMiB },
  used: { label: "in use", matches: (card) => card.podCount > 0 },
  closed: { label: "closed", matches: (card) => Boolean(closedBecause(card)) },
  unhealthy: { label: "unhealthy", matches: (card) => !card.healthy },
  cordoned: { label: "cordoned", matches: (card) => card.cordoned },
};
const DEFAULTS = { as: "map", by: "node", show: "all", node: "", model: "", namespace: "" };
const NONE = "No card matches. A node appears here when its device plugin has reported its cards.";
const DRAWN = new Set(MAP_FIELDS.split(","));

let opened = ""; // the card that was looked at last: it has the focus when one comes back

export const title = () => "Cards";

export function open(root) {
  const chosen = address.chosen(DEFAULTS);
  if (!Object.hasOwn(STATES, chosen.show)) chosen.show = DEFAULTS.show;
  let limit = PAGE;
  let cards = null; // by keyOf
  let namespaces = new Map(); // of cards, by keyOf
  let namespacesAt = 0;
  const choose = (name) => (value) => {
    chosen[name] = value;
    address.keep(chosen, DEFAULTS);
    changed();
  };
  const typed = (name) => (event) => choose(name)(event.target.value.trim());
  const models = suggestions("models");
  const namespaceNames = suggestions("namespaces");
  const [nodeLabel] = field("Node", { type: "search", placeholder: "part of a name", value: chosen.node, input: typed("node") });
  const [modelLabel] = field("Model", { type: "search", placeholder: "part of a name", value: chosen.model, list: models.id, input: typed("model") });
  const [namespaceLabel] = field("Namespace", { type: "search", placeholder: "part of a name", value: chosen.namespace, list: namespaceNames.id, input: typed("namespace") });
  const numbers = element("div");
  const list = element("div", {}, element("p", { class: "empty" }, "Loading…"));
  const count = element("p", { class: "empty", role: "status" });
  const keys = element("p", { class: "keys" }, "Left: memory allocated. Right: time guaranteed. ",
    element("span", {}, element("i", { class: "key closed" }), " closed"), element("span", {}, element("i", { class: "key unhealthy" }), " unhealthy"));
  const map = new CardMap((uuid) => {
    opened = uuid;
    location.hash = `#/cards/${encodeURIComponent(uuid)}`;
  });
  const options = Object.entries(STATES).map(([name, { label }]) => [name, label]);
  root.append(
    element("h1", {}, "Cards"),
    numbers,
    element("div", { class: "controls filters" },
      nodeLabel, modelLabel, namespaceLabel, models, namespaceNames,
      choice("Show", options, chosen.show, choose("show")),
      choice("As", [["map", "map"], ["list", "list"]], chosen.as, choose("as")),
      choice("By", [["node", "node"], ["rack", "rack"]], chosen.by, choose("by"))),
    list,
  );

  async function load(changes = null) {
    const isFirst = !cards;
    const summary = api.summary();
    if (changes && cards) await summary.catch(() => null); // cards and numbers change in one frame
    const parts = changes && cards ? apply(changes) : reload();
    await Promise.all([parts, summary.then((found) => updateChildren(numbers, overview(found)))]);
    if (isFirst && opened && chosen.as === "map") map.select(opened, true);
  }

  async function reload() {
    const found = new Map();
    for await (const page of pages({ fields: MAP_FIELDS, sort: "node,index" })) {
      for (const card of page) found.set(keyOf(card), card);
      if (!cards && chosen.as === "map" && found.size === ALL) drawMap([...found.values()].filter(matching()), found.size);
    }
    cards = found;
    suggestModels();
    if (chosen.namespace) await loadNamespaces();
    await draw();
  }

  /** Change what has changed: a map is drawn again only where other cards are in it. */
  async function apply(changes) {
    const changedCards = changes.filter(({ kind }) => kind === "gpu");
    if (chosen.namespace && Date.now() - namespacesAt > NAMESPACES_MS) await loadNamespaces();
    const matches = matching();
    let isSameMap = chosen.as === "map" && !chosen.namespace;
    for (const { type, object } of changedCards) {
      const key = keyOf(object);
      const before = cards.get(key);
      if (type === "DELETED") {
        isSameMap = false;
        cards.delete(key);
        continue;
      }
      const card = Object.fromEntries(Object.entries(object).filter(([name]) => DRAWN.has(name)));
      cards.set(key, card);
      const isInPlace = before && before.rack === card.rack && before.index === card.index && matches(before) === matches(card);
      isSameMap &&= isInPlace && (!matches(card) || map.replace(card));
    }
    if (!isSameMap) await draw();
  }

  /** What is chosen has changed. */
  async function changed() {
    if (!cards) return;
    if (chosen.namespace && !namespacesAt) await loadNamespaces();
    await draw();
  }

  async function loadNamespaces() {
    namespacesAt = Date.now();
    const found = new Map();
    for await (const page of pages({ fields: "uuid,node,namespaces", sort: "node,index" })) {
      for (const card of page) found.set(keyOf(card), card.namespaces);
    }
    namespaces = found;
    namespaceNames.offer(new Set([...found.values()].flat()));
  }

  function suggestModels() {
    models.offer(new Set([...cards.values()].map((card) => card.model)));
  }

  /** Return whether a card is one of those that are chosen. */
  function matching() {
    const has = (text, part) => text.toLowerCase().includes(part);
    const [node, model, namespace] = [chosen.node, chosen.model, chosen.namespace].map((text) => text.toLowerCase());
    return (card) => has(card.node, node) && has(card.model, model) && STATES[chosen.show].matches(card)
      && (!namespace || (namespaces.get(keyOf(card)) ?? []).some((name) => has(name, namespace)));
  }

  async function draw() {
    const shown = [...cards.values()].filter(matching());
    if (chosen.as === "list") await drawList(shown);
    else drawMap(shown, cards.size);
  }

  function drawMap(shown, all) {
    if (!list.contains(map.root)) list.replaceChildren(keys, map.root, count);
    map.update(shown, chosen.by === "rack");
    count.textContent = shown.length ? `${grouped(shown.length)} of ${grouped(all)} cards` : NONE;
  }

  async function drawList(shown) {
    shown.sort((one, other) => byName(one.node, other.node) || one.index - other.index);
    const rows = await withPods(shown.slice(0, limit));
    const lines = rows.flatMap((card, index) => [card.node === rows[index - 1]?.node ? [] : [heading(card.node)], row(card, load)].flat());
    if (!list.querySelector("table")) list.replaceChildren();
    updateChildren(list, table(COLUMNS, lines, NONE),
      shown.length > limit ? element("button", { click: () => { limit *= 3; draw(); } }, `Show more of ${grouped(shown.length)} cards`) : "");
  }
  return load;
}

/** Yield the cards, page by page. */
async function* pages(query) {
  let cursor = "";
  do {
    const page = await api.get("gpus", { ...query, limit: ALL, cursor });
    yield page.items;
    cursor = page.nextCursor;
  } while (cursor);
}

/** Return the cards with the containers on them. */
async function withPods(cards) {
  const nodes = [...new Set(cards.map((card) => card.node))];
  const whole = new Map();
  for (let first = 0; first < nodes.length; first += NODES) {
    for await (const page of pages({ node: nodes.slice(first, first + NODES) })) for (const card of page) whole.set(keyOf(card), card);
  }
  return cards.map((card) => whole.get(keyOf(card))).filter(Boolean);
}

function heading(node) {
  return element("tr", { class: "group", "data-key": `node ${node}` }, element("th", { colspan: COLUMNS.length, scope: "rowgroup" }, node));
}

function row(card, load) {
  return element("tr", { "data-key": keyOf(card) },
    element("td", { class: "name", "data-label": "Card" }, element("a", { title: card.uuid, href: `#/cards/${encodeURIComponent(card.uuid)}` }, `${card.index}  ${card.model}${card.unified ? " (unified)" : ""}`), " ", unusualBadges(card)),
    element("td", { class: "bar-cell", "data-label": "Memory" }, memoryBar(card)),
    element("td", { class: "bar-cell", "data-label": "Time" }, timeBar(card)),
    element("td", { "data-label": "Containers" }, containers(card)),
    element("td", { class: "actions" }, card.countsOn ? `counts on ${card.countsOn}` : cordonButton(card, load)));
}

/** Return badges for what is unusual about a card: most cards of a list are healthy and open. */
function unusualBadges(card) {
  return [
    card.healthy ? "" : badge(card.reason || "unhealthy", "bad"),
    card.staleSince ? badge(`last heard of at ${clock(card.staleSince)}`, "bad") : "",
    card.cordoned ? badge("cordoned", "warning") : "",
    card.nodeReason ? badge(card.nodeReason, "warning") : "",
    card.heldWhole ? badge("held whole", "plain") : "",
  ];
}

function memoryBar(card) {
  const parts = card.pods.map((held) => [held.whole ? card.memoryMiB : held.memoryMiB, "given"]);
  const known = parts.reduce((sum, [amount]) => sum + amount, 0);
  const others = Math.max(0, card.allocatedMiB - known); // of namespaces that the user may not see
  const used = card.usedMiB === null ? "" : `, ${memory(card.usedMiB)} in use`;
  return [bar([...parts, [others, "given others"]], card.memoryMiB, card.usedMiB),
    element("small", {}, `${memory(card.allocatedMiB)} of ${memory(card.memoryMiB)}${used}`)];
}

function timeBar(card) {
  const used = card.usedCores === null ? "" : `, ${percent(card.usedCores)} used`;
  const guaranteed = card.heldWhole ? 100 : card.allocatedCores;
  return [bar([[guaranteed, "given"]], 100, card.usedCores), element("small", {}, `${percent(guaranteed)} guaranteed${used}`)];
}

function containers(card) {
  if (!card.pods.length) return card.podCount ? `${card.podCount} of others` : "";
  return element("ul", { class: "tenants" }, card.pods.map((held) => {
    const has = share(held.whole, held.memoryMiB, held.cores);
    return element("li", { "data-key": `${held.namespace}/${held.pod}/${held.container}` }, podLink(held.namespace, held.pod), element("small", {}, ` ${held.container}: ${has}`));
  }));
}

function cordonButton(card, load) {
  const action = card.cordoned ? "uncordon" : "cordon";
  const click = async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      await api.post(`gpus/${encodeURIComponent(card.uuid)}/${action}`);
      await load();
      button.focus();
    } catch (problem) {
      button.replaceWith(element("span", { class: "error", role: "alert" }, problem.message));
    }
  };
  const text = card.cordoned ? "Take new containers again" : "No new containers; running ones stay";
  return element("button", { click, title: text, type: "button" }, action === "cordon" ? "Cordon" : "Uncordon");
}
