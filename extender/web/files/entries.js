// The events of the history, in words.

import { clock, counted, duration, share } from "./format.js";

/** The kinds of events, as `GET /history` names them, and what they are called here. */
export const KINDS = {
  decision: "decision", refusals: "refusals", start: "start", restart: "restart", end: "end", resize: "resize",
  card: "card", admin: "administrator", gap: "gap",
};

/** Return what happened, in one sentence; empty for a kind of event that this page does not know. */
export function sentence({ kind, event }) {
  return Object.hasOwn(SENTENCES, kind) ? SENTENCES[kind](event) : "";
}

const LIFE = ["refusals", "decision", "start", "resize", "restart", "end"];

/**
 * Return entries with the latest first. The kubelet tells whole seconds: of one second, the events of a pod are in the
 * order of its life, so that it does not start before it is bound.
 */
export function ordered(entries) {
  const second = ({ time }) => Math.floor(Date.parse(time) / 1000);
  const place = ({ kind }) => LIFE.indexOf(kind);
  return [...entries].sort((one, other) => second(other) - second(one) || place(other) - place(one) || other.id - one.id);
}

const SENTENCES = {
  decision: ({ cards, created_ms, at_ms, refused, group }) =>
    joined([`gets ${cards.map(ofCard).join(", ")}`, group && `in the group ${group}`, created_ms && at_ms - created_ms >= 500 && `waited ${duration((at_ms - created_ms) / 1000)}`, refusedBy(refused)]),
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
