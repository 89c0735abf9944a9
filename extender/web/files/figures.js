// What charts of cards and of pods have in common.

import * as address from "./address.js";
import { choice, element } from "./dom.js";

export const COLORS = ["--chart1", "--chart2", "--chart3", "--chart4"];
export const CAUSES = { turn: "for a turn", share: "share used up", drain: "own work", queued: "queued on the card" };

const TIMES = [["1h", "hour"], ["6h", "6 hours"], ["24h", "24 hours"], ["2d", "2 days"], ["7d", "7 days"]];
const DEFAULTS = { time: "24h" };

/** Return the heading of charts with the choice of their time, and how that is read; the address keeps it. */
export function chosenTime(onChange) {
  const chosen = address.chosen(DEFAULTS);
  if (!TIMES.some(([time]) => time === chosen.time)) chosen.time = DEFAULTS.time;
  const choose = (time) => {
    chosen.time = time;
    address.keep(chosen, DEFAULTS);
    onChange();
  };
  const heading = element("div", { class: "controls charttime" }, element("h2", {}, "Charts"), choice("of the last", TIMES, chosen.time, choose));
  return [heading, () => chosen.time];
}

/** Seconds that launches of all containers waited in a minute, at the times of the card's figures. */
export function waited(containers, cause, untilMs) {
  const sums = untilMs.map(() => null);
  for (const { untilMs: ends, fromMs, waitMs } of containers) {
    ends.forEach((end, index) => {
      const place = untilMs.findIndex((ms) => ms >= end);
      const value = waitMs[cause][index];
      if (place >= 0 && value !== null) sums[place] = (sums[place] ?? 0) + (60 * value) / (end - fromMs[index]);
    });
  }
  return sums;
}
