// Numbers as people read them. Amounts of memory are MiB, as in the REST.

/** 8192 -> "8 GiB", 8190 -> "8190 MiB": only whole halves of a GiB are written as GiB. */
export function memory(mib) {
  if (mib === null || mib === undefined) return "–";
  if (mib === 0) return "0";
  if (mib >= 1024 && mib % 512 === 0) return `${grouped(mib / 1024)}\u00a0GiB`;
  return mib >= 10240 ? `${grouped((mib / 1024).toFixed(1))}\u00a0GiB` : `${grouped(Math.round(mib))}\u00a0MiB`;
}

/** 30 -> "30 %". */
export function percent(value) {
  return value === null || value === undefined ? "–" : `${Math.round(value * 10) / 10}\u00a0%`;
}

/** 230 percent of one card's time, added up over 8 cards -> "2.3 of 8 cards". */
export function ofCards(percentOfOne, cards) {
  return `${grouped(Math.round(percentOfOne) / 100)} of ${grouped(cards)} cards`;
}

/** The colour of a pod's status. */
export const STATUS_KINDS = { Running: "good", Pending: "warning", Starting: "warning" };

/** A pod's status with the kubelet's word for why it does not run: "Starting (ImagePullBackOff)". */
export function podStatus({ status, statusReason }) {
  return statusReason ? `${status} (${statusReason})` : status;
}

/** What a container has of a card: "8 GiB, 30 %", or "whole card". */
export function share(whole, mib, cores) {
  return whole ? "whole card" : [memory(mib), cores ? percent(cores) : ""].filter(Boolean).join(", ");
}

/** Which group in space a container is a member of: ", in the group team/models"; empty where it is in none. */
export function inGroup({ spaceGroup }) {
  return spaceGroup ? `, in the group ${spaceGroup}` : "";
}

/** Card-seconds as hours. */
export function hours(seconds) {
  return seconds === null || seconds === undefined ? "–" : grouped((seconds / 3600).toFixed(seconds < 36000 ? 2 : 1));
}

/** 1 -> "1 node", 2 -> "2 nodes". */
export function counted(number, noun) {
  return `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** 12345.6 -> "12,345.6". */
export function grouped(number) {
  const [whole, rest] = String(number).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
}

/** Seconds as the two largest units: 3725 -> "1 h 2 min". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let left = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [name, size] of units) {
    const count = Math.floor(left / size);
    if (count && parts.length < 2) parts.push(`${count} ${name}`);
    left -= count * size;
  }
  return parts.join(" ") || "0 s";
}

/** Time since an RFC 3339 time; empty for an empty one. */
export function since(time, now = Date.now()) {
  return time ? duration((now - Date.parse(time)) / 1000) : "";
}

/** The sentence about a history that begins later than the period of an answer; empty where it does not. */
export function beginning({ storedSince }) {
  return storedSince ? ` The history begins at ${clock(storedSince)}: nothing earlier is counted.` : "";
}

/** An RFC 3339 time in the browser's time zone. */
export function clock(time) {
  return new Date(time).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
}
