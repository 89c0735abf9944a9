// What charts of cards and of pods have in common.

export const COLORS = ["--chart1", "--chart2", "--chart3", "--chart4"];
export const CAUSES = { turn: "for a turn", share: "share used up", drain: "own work", queued: "queued on the card" };

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
