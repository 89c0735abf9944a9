// The map of the cluster: a tile for each card, by node, or by rack and node. A tile changes only where its card does. Many
// cards have small tiles of one element each, so that 5,000 of them are fast; few have large ones with figures.

import { element } from "./dom.js";
import { counted, memory, percent } from "./format.js";

export const byName = new Intl.Collator("en", { numeric: true }).compare; // node-2 before node-10
const MOVES = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
const NO_RACK = "No rack";
const LARGE_MAX = 64; // cards with large tiles: eight nodes with eight cards fill a screen

/** Why a card takes no new containers; empty where it does. */
export function closedBecause(card) {
  if (card.countsOn) return `counts on ${card.countsOn}`;
  if (card.cordoned) return "cordoned";
  return card.nodeReason;
}

/** Return the percent of a card's memory that is allocated, and of its time that is guaranteed. */
export function allocated(card) {
  const cores = card.heldWhole ? 100 : card.allocatedCores;
  return [Math.min(100, (100 * card.allocatedMiB) / Math.max(1, card.memoryMiB)), cores];
}

/** The words that a screen reader says, and a pointer shows, about a card. */
export function described(card) {
  const [mib, cores] = allocated(card);
  const used = card.usedCores === null ? "" : `, ${percent(card.usedCores)} of its time used`;
  const closed = closedBecause(card);
  const state = card.healthy ? (closed ? `closed: ${closed}` : "open") : `unhealthy${card.reason ? `: ${card.reason}` : ""}`;
  return `${card.node} card ${card.index}, ${card.model}, ${memory(card.memoryMiB)}: ${percent(mib)} of memory allocated and ${percent(cores)} of time guaranteed${used}, ${state}`;
}

/** What a large tile shows, from top to bottom. */
function figures(card) {
  const state = card.healthy ? (closedBecause(card) && "closed") : "unhealthy";
  return [
    element("span", { class: "tilehead" }, `card ${card.index}`, element("span", { class: state || "muted" }, state || counted(card.podCount, "pod"))),
    element("span", { class: "tilebar memory" }),
    element("span", {}, `${memory(card.allocatedMiB)} of ${memory(card.memoryMiB)}`),
    element("span", { class: "tilebar time" }),
    element("span", {}, card.heldWhole ? "whole card" : `${percent(card.allocatedCores)} of time`),
  ];
}

/** The name of a card in all lists: a card may be listed by two nodes. */
export function keyOf(card) {
  return `${card.node}/${card.uuid}`;
}

/** A map of cards. `update` takes all cards that are to be shown, `replace` one that is shown already. */
export class CardMap {
  constructor(onOpen) {
    this.root = element("div", { class: "map", role: "group", "aria-label": "Map of the cards",
      keydown: (event) => this.#move(event),
      click: (event) => {
        const card = this.cards.get(event.target.closest(".cardtile"));
        if (card) onOpen(card.uuid);
      },
      mouseover: (event) => {
        const tile = event.target.closest(".cardtile");
        if (tile) tile.title = tile.getAttribute("aria-label");
      } });
    this.tiles = new Map(); // by card
    this.cards = new WeakMap(); // by tile
    this.groups = new Map(); // by the name of the node, or of the rack
    this.isLarge = false;
  }

  /** Show these cards by node, or by rack and node. */
  update(cards, isByRack) {
    const seen = new Set();
    this.#size(cards.length <= LARGE_MAX);
    const racks = isByRack ? grouped(cards, (card) => card.rack || NO_RACK) : new Map([["", cards]]);
    const shown = names(racks).map((rack) => {
      const nodes = this.#nodes(racks.get(rack), seen);
      return isByRack ? [this.#rack(rack, nodes, racks.get(rack).length)] : nodes;
    });
    for (const key of this.tiles.keys()) if (!seen.has(key)) this.tiles.delete(key);
    for (const name of this.groups.keys()) if (!seen.has(name)) this.groups.delete(name);
    placeChildren(this.root, shown.flat());
    this.root.classList.toggle("byrack", isByRack);
    if (!this.root.querySelector(".cardtile[tabindex='0']")) this.root.querySelector(".cardtile")?.setAttribute("tabindex", "0");
  }

  #size(isLarge) {
    if (isLarge === this.isLarge) return;
    this.isLarge = isLarge;
    this.tiles.clear();
    this.root.classList.toggle("large", isLarge);
  }

  /** Draw a card again; false where it is not shown. */
  replace(card) {
    if (!this.tiles.has(keyOf(card))) return false;
    this.#tile(card);
    return true;
  }

  /** Make a card's tile the one that has the focus when the map gets it; focus it where `now` is true. */
  select(uuid, now = false) {
    const tile = [...this.tiles.values()].find((made) => this.cards.get(made).uuid === uuid);
    if (tile) this.#take(tile, now);
  }

  #take(tile, now) {
    this.root.querySelector(".cardtile[tabindex='0']")?.setAttribute("tabindex", "-1");
    tile.setAttribute("tabindex", "0");
    if (now) tile.focus();
  }

  #nodes(cards, seen) {
    const nodes = grouped(cards, (card) => card.node);
    return names(nodes).map((name) => {
      seen.add(name);
      const group = this.#group(name);
      const tiles = nodes.get(name).sort((one, other) => one.index - other.index).map((card) => {
        seen.add(keyOf(card));
        return this.#tile(card);
      });
      placeChildren(group.lastChild, tiles);
      return group;
    });
  }

  #group(name) {
    if (!this.groups.has(name)) {
      this.groups.set(name, element("div", { class: "mapnode", role: "group", "aria-label": name },
        element("span", { class: "mapname", title: name, "aria-hidden": "true" }, name), element("div", { class: "maptiles" })));
    }
    return this.groups.get(name);
  }

  #rack(name, nodes, count) {
    const key = `rack/${name}`; // no node has such a name
    const made = [...this.root.children].find((child) => child.dataset.rack === key) ?? element(
      "section", { class: "maprack", "data-rack": key, "aria-label": `Rack ${name}` }, element("h2", { class: "rackname", title: name }), element("div", { class: "map" }));
    made.firstChild.textContent = name === NO_RACK ? `${NO_RACK} (${counted(count, "card")})` : `${name} (${counted(nodes.length, "node")}, ${counted(count, "card")})`;
    placeChildren(made.lastChild, nodes);
    return made;
  }

  #tile(card) {
    const key = keyOf(card);
    let tile = this.tiles.get(key);
    if (tile && this.cards.get(tile) === card) return tile;
    if (!tile) {
      tile = element("button", { class: "cardtile", tabindex: "-1", type: "button" });
      this.tiles.set(key, tile);
    }
    const [mib, cores] = allocated(card);
    const text = described(card);
    const before = this.cards.get(tile);
    this.cards.set(tile, card);
    if (before && before.staleSince === card.staleSince && before.podCount === card.podCount && tile.getAttribute("aria-label") === text) return tile;
    tile.setAttribute("aria-label", text);
    tile.style.setProperty("--mem", `${mib}%`);
    tile.style.setProperty("--time", `${cores}%`);
    const marks = [closedBecause(card) && "closed", !card.healthy && "unhealthy", card.staleSince && "stale"].filter(Boolean);
    tile.className = ["cardtile", ...marks].join(" ");
    if (this.isLarge) tile.replaceChildren(...figures(card));
    return tile;
  }

  /** Arrow keys go from tile to tile: right and left in order, up and down to the nearest tile of the next row. */
  #move(event) {
    const tile = document.activeElement;
    if (!this.cards.has(tile) || !(event.key in MOVES || event.key === "ArrowUp" || event.key === "ArrowDown")) return;
    event.preventDefault();
    const next = event.key in MOVES ? this.#inOrder(tile, MOVES[event.key]) : vertical(this.root, tile, event.key === "ArrowDown");
    if (next) this.#take(next, true);
  }

  #inOrder(tile, steps) {
    const tiles = [...this.root.querySelectorAll(".cardtile")];
    return tiles[Math.max(0, Math.min(tiles.length - 1, tiles.indexOf(tile) + steps))];
  }
}

/** The nearest tile of another row: of the same node, else of the nearest node above or below. */
function vertical(root, tile, isDown) {
  const from = tile.getBoundingClientRect();
  const own = tile.closest(".mapnode");
  return nearest([...own.querySelectorAll(".cardtile")], from, isDown)
    ?? nearestOf(nearest([...root.querySelectorAll(".mapnode")].filter((node) => node !== own), own.getBoundingClientRect(), isDown), from, isDown);
}

function nearestOf(node, from, isDown) {
  return node && nearest([...node.querySelectorAll(".cardtile")], from, isDown);
}

function nearest(elements, from, isDown) {
  let best = null;
  let distance = Infinity;
  for (const found of elements) {
    const box = found.getBoundingClientRect();
    const rows = isDown ? box.top - from.top : from.top - box.top;
    const far = rows * 10 + Math.abs(box.left - from.left);
    if (rows > 2 && far < distance) [best, distance] = [found, far];
  }
  return best;
}

function names(groups) {
  return [...groups.keys()].sort(byName);
}

function grouped(cards, name) {
  const found = new Map();
  for (const card of cards) {
    const group = found.get(name(card));
    if (group) group.push(card);
    else found.set(name(card), [card]);
  }
  return found;
}

/** Give an element these children, and leave those alone that are in their place: the focus stays. */
function placeChildren(parent, wanted) {
  wanted.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
  while (parent.children.length > wanted.length) parent.lastChild.remove();
}
