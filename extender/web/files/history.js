// What happened, the latest first: decisions, starts, ends, events of cards, and administrators' actions.

import * as api from "./api.js";
import { badge, choice, element, field, moreButton, podLink, show, table } from "./dom.js";
import { clock, counted, duration, share } from "./format.js";

const COLUMNS = [["Time", "time"], ["Event", ""], ["About", "name"], ["Node", "name"], ["Details", "text"]];
const PERIODS = [["1h", "hour"], ["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]];

export const title = () => "History";

export function open(root) {
  let period = "24h";
  let limit = 100;
  const list = element("div");
  const [label, name] = field("Pod", { type: "search", placeholder: "name", change: () => load() });
  root.append(
    element("h1", {}, "History"),
    element("div", { class: "controls" }, label, choice("in the last", PERIODS, period, (chosen) => {
      period = chosen;
      load();
    })),
    list,
  );

  async function load() {
    const page = await api.get("history", { since: period, name: name.value.trim(), limit });
    show(list,
      table(COLUMNS, page.items.map(row), "Nothing happened in this period."),
      moreButton(page, limit, (rows) => {
        limit = rows;
        load();
      }),
    );
  }
  return load;
}

function row({ time, kind, namespace, event }) {
  const { pod, node, gpu } = event;
  const about = pod ? podLink(namespace, pod.name) : gpu ?? "";
  return [clock(time), badge(kind), about, node ?? "", Object.hasOwn(SENTENCES, kind) ? SENTENCES[kind](event) : ""];
}

const SENTENCES = {
  decision: ({ cards, created_ms, at_ms, refused }) =>
    joined([`gets ${cards.map(ofCard).join(", ")}`, created_ms && `waited ${duration((at_ms - created_ms) / 1000)}`, refusedBy(refused)]),
  refusals: ({ attempts, reasons, message }) => joined([message || refusedBy(reasons), counted(attempts, "attempt")]),
  start: ({ container }) => `container ${container} started`,
  restart: (event) => joined([`container ${event.container} restarted, number ${event.count}`, ending(event)]),
  end: (event) => joined([event.container ? `container ${event.container} ended` : "ended", ending(event), unseen(event)]),
  card: ({ index, model, change, detail }) => joined([`card ${index}, ${model}: ${change}`, detail]),
  admin: ({ user, verb, outcome, detail }) => joined([`${user}: ${verb}`, detail, outcome]),
  gap: ({ replica, events, from_ms: from }) => `${counted(events, "event")} of ${replica} since ${clock(new Date(from).toISOString())} not recorded`,
  resize: ({ share: { container }, card }) => `container ${container} has now ${ofCard(card)}`,
};

function ofCard({ index, memory_mib: mib, cores, whole }) {
  return `card ${index}: ${share(whole, mib, cores)}`;
}

function ending({ exit_code: code, reason }) {
  return joined([reason !== "Ended" && reason, code !== null && code !== undefined && `exit code ${code}`]);
}

/** An end that nobody saw lies between two times. */
function unseen({ after_ms: after, at_ms: at }) {
  return after < at && `some time after ${clock(new Date(after).toISOString())}`;
}

/** Numbers of nodes by reason. */
function refusedBy(reasons) {
  const each = Object.entries(reasons ?? {}).map(([reason, nodes]) => `${counted(nodes, "node")}: ${reason}`);
  return each.length > 0 && `refused by ${each.join(", ")}`;
}

function joined(parts) {
  return parts.filter(Boolean).join(", ");
}
