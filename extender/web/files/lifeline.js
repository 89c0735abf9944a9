// The life of one pod as a time line: from its creation to its end.

import { bar } from "./bar.js";
import { element } from "./dom.js";
import { ordered, sentence } from "./entries.js";
import { clock, duration } from "./format.js";

const IDLE_S = 120; // shorter pauses are no news
const NAMES = { decision: "bound", refusals: "waited", start: "started", restart: "restarted", end: "ended", resize: "resized" };
const PHASES = [["waiting", "over"], ["starting", "others"], ["running", "given"], ["idle", "free"]];

/** Return the time line of a pod's entries; `pod` is null where the pod does not exist any more. */
export function lifeline(pod, waitsSince, entries, now = Date.now()) {
  const steps = stepsOf(pod, waitsSince, entries, now);
  if (!steps.length) return [element("p", { class: "empty" }, "Nothing is recorded of this pod yet.")];
  return [phases(pod, steps, now), element("ol", { class: "lifeline" }, steps.map((step) => element("li", { "data-key": `${step.name} ${step.atMs}` },
    element("time", { datetime: new Date(step.atMs).toISOString() }, clock(step.atMs)), element("strong", {}, step.name), element("span", {}, step.text))))];
}

/** Return what happened, the earliest first: {atMs, name, text}. */
function stepsOf(pod, waitsSince, entries, now) {
  const bound = entries.find(({ kind }) => kind === "decision")?.event;
  const createdMs = bound?.created_ms || (waitsSince && Date.parse(waitsSince));
  const steps = ordered(entries).reverse().map((entry) => ({ atMs: Date.parse(entry.time), name: NAMES[entry.kind] ?? entry.kind, text: sentence(entry), kind: entry.kind, event: entry.event }));
  if (createdMs) steps.unshift({ atMs: createdMs, name: bound?.created_ms ? "created" : "waits", text: "", kind: "created" });
  if (pod?.idleSeconds > IDLE_S) steps.push({ atMs: now - pod.idleSeconds * 1000, name: "idle", text: `has not used a card for ${duration(pod.idleSeconds)}`, kind: "idle" });
  return steps;
}

/** Return a bar of how long the pod waited, started, ran and was idle. */
function phases(pod, steps, now) {
  const at = (kind, found = (step) => step.kind === kind) => steps.find(found)?.atMs;
  const ended = at("end", (step) => step.kind === "end" && !step.event.container);
  const until = ended ?? now;
  const times = [at("created"), at("decision"), at("start"), at("idle"), until];
  for (let place = times.length - 2; place >= 0; place -= 1) times[place] = Math.min(times[place] ?? times[place + 1], times[place + 1]);
  const lasted = PHASES.map(([name, kind], place) => [name, kind, Math.max(0, times[place + 1] - times[place]) / 1000]);
  const known = lasted.filter(([, , seconds]) => seconds >= 1);
  if (!known.length) return "";
  const whole = known.reduce((sum, [, , seconds]) => sum + seconds, 0);
  return element("div", { class: "phases" }, bar(known.map(([, kind, seconds]) => [seconds, kind]), whole),
    element("p", { class: "keys" }, known.map(([name, kind, seconds]) => element("span", {}, element("i", { class: `key ${kind}`, "aria-hidden": "true" }), ` ${name} ${duration(seconds)}`))));
}
