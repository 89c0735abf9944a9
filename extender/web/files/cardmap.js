// The map of the cluster: a small tile for each card, by node. A tile is one element, so that 5,000 of them are fast.

import { element } from "./dom.js";
import { memory, percent } from "./format.js";

const byName = new Intl.Collator("en", { numeric: true }).compare; // node-2 before node-10
const MOVES = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

/** Why a card takes no new containers; empty where it does. */
export function closedBecause(card) {
  if (card.countsOn) return `counts on ${card.countsOn}`;
  if (card.cordoned) return "cordoned";
  return card.nodeReason;
}

/** Return the percent of a card's memory and time that is given away. */
export function given(card) {
  const cores = card.heldWhole ? 100 : card.allocatedCores;
  return [Math.min(100, (100 * card.allocatedMiB) / Math.max(1, card.memoryMiB)), cores];
}

/** The words that a screen reader says, and a pointer shows, about a card. */
export function described(card) {
  const [mib, cores] = given(card);
  const used = card.usedCores === null ? "" : `, ${percent(card.usedCores)} of its time used`;
  const closed = closedBecause(card);
  const state = card.healthy ? (closed ? `closed: ${closed}` : "open") : `ill: ${card.reason || "unhealthy"}`;
  return `${card.node} card ${card.index}, ${card.model}, ${memory(card.memoryMiB)}: ${percent(mib)} of memory and ${percent(cores)} of time given${used}, ${state}`;
}

/** A map of cards. `update` takes all cards that are to be shown, and touches only tiles that change. */
export class CardMap {
  constructor(onOpen) {
    this.root = element("div", { class: "map", role: "group", "aria-label": "Map of the cards", keydown: (event) => this.#move(event), click: (event) => {
      const tile = event.target.closest(".cardtile");
      if (tile) onOpen(tile.dataset.uuid);
    } });
    this.tiles = new Map();
    this.groups = new Map();
  }

  update(cards) {
    const nodes = Map.groupBy ? Map.groupBy(cards, (card) => card.node) : grouped(cards);
    const names = [...nodes.keys()].sort(byName);
    const seen = new Set();
    for (const name of names) {
      const group = this.#group(name);
      const tiles = nodes.get(name).sort((one, other) => one.index - other.index).map((card) => {
        seen.add(keyOf(card));
        return this.#tile(card);
      });
      placeChildren(group.lastChild, tiles);
    }
    for (const key of this.tiles.keys()) if (!seen.has(key)) this.tiles.delete(key);
    for (const name of this.groups.keys()) if (!nodes.has(name)) this.groups.delete(name);
    placeChildren(this.root, names.map((name) => this.groups.get(name)));
    if (!this.root.querySelector(".cardtile[tabindex='0']")) this.root.querySelector(".cardtile")?.setAttribute("tabindex", "0");
  }

  /** Make a card's tile the one that has the focus when the map gets it; focus it where `now` is true. */
  select(uuid, now = false) {
    const tile = [...this.tiles.values()].find((each) => each.made.dataset.uuid === uuid)?.made;
    if (!tile) return;
    this.root.querySelector(".cardtile[tabindex='0']")?.setAttribute("tabindex", "-1");
    tile.setAttribute("tabindex", "0");
    if (now) tile.focus();
  }

  #group(name) {
    if (!this.groups.has(name)) {
      this.groups.set(name, element("div", { class: "mapnode", role: "group", "aria-label": name }, element("span", { class: "mapname", title: name, "aria-hidden": "true" }, name), element("div", { class: "maptiles" })));
    }
    return this.groups.get(name);
  }

  #tile(card) {
    const text = described(card);
    const key = keyOf(card);
    let known = this.tiles.get(key);
    if (!known) {
      known = { made: element("button", { class: "cardtile", tabindex: "-1", type: "button" }), text: "" };
      known.made.dataset.uuid = card.uuid;
      this.tiles.set(key, known);
    }
    if (known.text !== text || known.stale !== card.staleSince) {
      const [mib, cores] = given(card);
      const { made } = known;
      made.setAttribute("aria-label", text);
      made.title = text;
      made.style.setProperty("--mem", `${mib}%`);
      made.style.setProperty("--time", `${cores}%`);
      made.classList.toggle("closed", Boolean(closedBecause(card)));
      made.classList.toggle("ill", !card.healthy);
      made.classList.toggle("stale", Boolean(card.staleSince));
      Object.assign(known, { text, stale: card.staleSince });
    }
    return known.made;
  }

  /** Arrow keys go from tile to tile: right and left in order, up and down to the nearest tile of the row. */
  #move(event) {
    const tiles = [...this.root.querySelectorAll(".cardtile")];
    const at = tiles.indexOf(document.activeElement);
    if (at < 0 || !(event.key in MOVES || event.key === "ArrowUp" || event.key === "ArrowDown")) return;
    event.preventDefault();
    const to = event.key in MOVES ? tiles[Math.max(0, Math.min(tiles.length - 1, at + MOVES[event.key]))] : vertical(tiles, at, event.key === "ArrowDown");
    if (to) this.select(to.dataset.uuid, true);
  }
}

function vertical(tiles, at, down) {
  const from = tiles[at].getBoundingClientRect();
  let best = null;
  let distance = Infinity;
  for (const tile of tiles) {
    const box = tile.getBoundingClientRect();
    const rows = down ? box.top - from.top : from.top - box.top;
    const far = rows * 10 + Math.abs(box.left - from.left);
    if (rows > 2 && far < distance) [best, distance] = [tile, far];
  }
  return best;
}

function keyOf(card) {
  return `${card.node}/${card.uuid}`; // a card may be listed by two nodes
}

function grouped(cards) {
  const found = new Map();
  for (const card of cards) found.set(card.node, [...(found.get(card.node) ?? []), card]);
  return found;
}

/** Give an element these children, and leave those alone that are in their place: the focus stays. */
function placeChildren(parent, wanted) {
  wanted.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
  while (parent.children.length > wanted.length) parent.lastChild.remove();
}
