// One card: what its containers have and use of it, with charts.

import * as address from "./address.js";
import * as api from "./api.js";
import { bar } from "./bar.js";
import { closedBecause } from "./cardmap.js";
import { chart } from "./charts.js";
import { badge, element, podLink } from "./dom.js";
import { CAUSES, chosenTime, COLORS, waited } from "./figures.js";
import { clock, counted, inGroup, memory, percent, share } from "./format.js";

const CHARTS_MS = 60000; // nodes report about once a minute

export const title = () => "Card";

export function open(root, [uuid], reload) {
  const heading = element("h1", {}, "Card");
  const facts = element("p", { class: "facts" });
  const actions = element("p", { class: "controls" });
  const list = element("div");
  const charts = element("div", { class: "charts" });
  let chartsAt = 0;
  const [timeHeading, time] = chosenTime(() => {
    chartsAt = 0;
    reload();
  });
  root.append(
    element("p", {}, element("a", { href: address.lastOf("#/cards") }, "← All cards")), heading, facts, actions,
    element("h2", {}, "Containers"), list, timeHeading, charts,
  );

  async function load() {
    const card = await api.get(`gpus/${encodeURIComponent(uuid)}`);
    heading.textContent = `${card.node}, card ${card.index}`;
    facts.replaceChildren(`${card.model}, ${memory(card.memoryMiB)}. `, element("code", {}, card.uuid), " ", ...stateBadges(card));
    if (!actions.dataset.busy) showAction(actions, card, load);
    list.replaceChildren(...containers(card));
    if (Date.now() - chartsAt > CHARTS_MS) {
      chartsAt = Date.now();
      await showCharts(charts, card, time());
    }
  }
  return load;
}

/** Return badges: healthy or why not, why it is closed, held whole, and since when its node is silent. */
export function stateBadges(card) {
  const closed = closedBecause(card);
  return [
    card.healthy ? badge("healthy", "good") : badge(card.reason || "unhealthy", "bad"), " ",
    closed ? badge(closed, "warning") : "", " ",
    card.heldWhole ? badge("held whole") : "", " ",
    card.staleSince ? badge(`last heard of at ${clock(card.staleSince)}`, "bad") : "",
  ];
}

/** Cordon asks once, says what happens, and can be undone. */
function showAction(actions, card, load) {
  const wanted = card.cordoned ? "uncordon" : "cordon";
  const shownText = actions.querySelector("button")?.textContent;
  const text = card.cordoned ? "Uncordon" : "Cordon";
  if (card.countsOn || shownText === text) return;
  const run = async () => {
    actions.dataset.busy = "1";
    actions.replaceChildren(element("span", { role: "status" }, card.cordoned ? "Uncordoning…" : "Cordoning…"));
    try {
      await api.post(`gpus/${encodeURIComponent(card.uuid)}/${wanted}`);
      delete actions.dataset.busy;
      showAction(actions, { ...card, cordoned: !card.cordoned }, load);
      actions.append(element("span", { role: "status" }, card.cordoned ? "The card takes new containers again." : "The card takes no new containers. Running ones stay."));
      actions.querySelector("button").focus();
    } catch (problem) {
      actions.replaceChildren(element("span", { class: "error", role: "alert" }, problem.message));
    }
  };
  const ask = () => {
    if (card.cordoned) {
      run();
      return;
    }
    actions.dataset.busy = "1";
    const back = () => {
      delete actions.dataset.busy;
      actions.replaceChildren();
      showAction(actions, card, load);
      actions.querySelector("button").focus();
    };
    const yes = element("button", { click: run }, "Cordon it");
    actions.replaceChildren(element("span", {}, "Cordon this card? It takes no new containers; running ones stay."), yes, element("button", { click: back }, "Cancel"));
    yes.focus();
  };
  actions.replaceChildren(element("button", { click: ask }, text));
}

function containers(card) {
  const hidden = card.podCount - new Set(card.pods.map((held) => `${held.namespace}/${held.pod}`)).size;
  const listed = card.pods.reduce((sum, held) => sum + (held.whole ? card.memoryMiB : held.memoryMiB), 0);
  const others = Math.max(0, card.allocatedMiB - listed);
  const mib = card.pods.flatMap((held) => split(held.whole ? card.memoryMiB : held.memoryMiB, held.usedMiB ?? 0));
  const cores = card.pods.flatMap((held) => split(held.cores, held.usedCores ?? 0));
  return [
    element("div", { class: "stacks" },
      stack("Memory", [...mib, [others, "given others"]], card.memoryMiB, `${memory(card.allocatedMiB)} of ${memory(card.memoryMiB)} allocated${known(card.usedMiB, memory, "in use")}`),
      stack("Time", cores, 100, `${percent(card.heldWhole ? 100 : card.allocatedCores)} guaranteed${known(card.usedCores, percent, "used")}`),
      element("p", { class: "keys" }, key("usedpart", "guaranteed and used"), key("given", "guaranteed and idle"), key("over", "used beyond the guarantee"), key("free", "free"))),
    card.pods.length ? element("ul", { class: "held" }, card.pods.map((held) => element("li", {},
      podLink(held.namespace, held.pod), " ", element("small", {}, `${held.container}: ${share(held.whole, held.memoryMiB, held.cores)}${inGroup(held)}${held.usedMiB === null ? "" : `; uses ${memory(held.usedMiB)}, ${percent(held.usedCores)}`}`)))) : "",
    ...groups(card.spaceGroups),
    hidden > 0 ? element("p", { class: "empty" }, `${counted(hidden, "pod")} of namespaces that you may not see.`) : "",
    card.podCount ? "" : element("p", { class: "empty" }, "No container is on this card."),
  ];
}

/** The groups in space, whose members run at the same moment: what each has and uses as a whole. */
function groups(found) {
  if (!found.length) return [];
  const uses = (group) => (group.usedMiB === null ? "" : `; uses ${memory(group.usedMiB)}, ${percent(group.usedCores)}`);
  const said = (group) => ` ${counted(group.members, "member")}: ${share(false, group.memoryMiB, group.cores)}${uses(group)}`;
  return [element("h3", {}, "Groups in space"), element("ul", { class: "held", "aria-label": "Groups in space" }, found.map((group) =>
    element("li", { "data-key": group.spaceGroup }, element("strong", {}, group.spaceGroup), element("small", {}, said(group)))))];
}

/** Return a figure with its name; nothing where no node has reported it. */
function known(value, write, name) {
  return value === null ? "" : `, ${write(value)} ${name}`;
}

/** What is guaranteed and used, guaranteed and idle, and used beyond the guarantee. */
function split(guaranteed, used) {
  return [[Math.min(guaranteed, used), "usedpart"], [Math.max(0, guaranteed - used), "given"], [Math.max(0, used - guaranteed), "over"]];
}

function stack(name, parts, whole, text) {
  return element("div", { class: "stack" }, element("strong", {}, name), bar(parts, whole), element("small", {}, text));
}

function key(kind, text) {
  return element("span", {}, element("i", { class: `key ${kind}`, "aria-hidden": "true" }), ` ${text} `);
}

async function showCharts(root, card, since) {
  let found;
  try {
    found = await api.get(`gpus/${encodeURIComponent(card.uuid)}/series`, { since });
  } catch (problem) {
    root.replaceChildren(element("p", { class: "empty" }, `There are no charts: ${problem.message}.`));
    return;
  }
  const own = found.card;
  const period = [Date.parse(found.since), Date.parse(found.until)];
  const named = found.containers.slice(0, COLORS.length).map((series, index) => ({ series, color: COLORS[index], name: `${series.namespace}/${series.pod}` }));
  const times = [...new Set([...own.untilMs, ...named.flatMap(({ series }) => series.untilMs)])].sort((one, other) => one - other);
  const at = (series, values) => {
    const known = new Map(series.untilMs.map((ms, index) => [ms, values[index]]));
    return times.map((ms) => known.get(ms) ?? null);
  };
  const lines = (field, unit) => [
    { name: unit, values: at(own, own[field]), color: "--used", fill: true },
    ...named.map(({ series, color, name }) => ({ name, values: at(series, series[field]), color })),
  ];
  const waits = Object.entries(CAUSES).map(([cause, name], index) => ({
    name, color: COLORS[index], values: waited(found.containers, cause, own.untilMs),
  }));
  root.replaceChildren(
    chart("Memory in use", times, lines("usedMiB", "the card"), memory, period, card.memoryMiB),
    chart("Time used", times, lines("usedCores", "the card"), percent, period, 100),
    chart("Waits of launches, seconds in a minute", own.untilMs, waits, (value) => String(Math.round(value * 10) / 10), period),
    chart("Temperature", own.untilMs, [{ name: "GPU", values: own.celsius, color: "--chart2" }], (value) => `${value} °C`, period, 100),
    chart("Power", own.untilMs, [{ name: "drawn", values: own.watts, color: "--chart3" }], (value) => `${Math.round(value)} W`, period),
  );
}
