// Requests to the admin REST, below the address of the page: the page works behind a proxy's path too.

const TOKEN = "vgpu-token"; // kept for the browser's tab only
const RETRY_MS = 3000;
const CHANGES_MS = 1000; // at most one update a second, however much changes
const MOST_CHANGES = 2000; // of one update: more of them are read as lists

/** An answer that is an error. `fields` has what is wrong with which field of the request. */
export class Problem extends Error {
  constructor(status, message, fields = []) {
    super(message);
    this.status = status;
    this.fields = fields;
  }
}

/** There is no answer: the connection failed. */
export class Unreachable extends Error {}

export function setToken(token) {
  sessionStorage.setItem(TOKEN, token.trim());
}

export function hasToken() {
  return Boolean(sessionStorage.getItem(TOKEN));
}

/** GET a path below /api/v1. A query's lists become repeated parameters; empty values are left out. */
export async function get(path, query = {}) {
  const body = await fetchJson(path, query);
  noteStaleness(path, body.staleSince ?? "");
  return body;
}

async function fetchJson(path, query) {
  const parameters = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).filter((each) => each !== "" && each !== undefined)
      .map((each) => [name, each]));
  const text = new URLSearchParams(parameters).toString();
  return readAnswer(await send(`${path}${text ? `?${text}` : ""}`));
}

const OF_CLUSTER = new Set(["summary", "gpus", "nodes", "pods", "pending"]); // old or fresh together
const stale = new Map(); // by path, since when its last answer is old
let onStale = () => {};

/** Call `listener` with the earliest time since which any answer of the view is old, or with an empty text. */
export function whenStale(listener) {
  stale.clear();
  onStale = listener;
  onStale("");
}

function noteStaleness(path, since) {
  stale.set(OF_CLUSTER.has(path) ? "cluster" : path, since);
  onStale([...stale.values()].filter(Boolean).sort()[0] ?? "");
}

let summaryUnderWay = null;

/** GET the summary; calls while one is under way share its answer: a view and the number beside "Waiting pods". */
export function summary() {
  summaryUnderWay ??= get("summary").finally(() => {
    summaryUnderWay = null;
  });
  return summaryUnderWay;
}

/** POST a body, or none. */
export async function post(path, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  return readAnswer(await send(path, { method: "POST", headers, body: body === undefined ? null : JSON.stringify(body) }));
}

/**
 * Call `onChange` with what has changed of pods, cards and nodes, and `onState` with whether the stream is open, until
 * `signal` aborts. A change is {kind, type, object}, as `/events` has it; null says that anything may have changed: a
 * stream has begun, so that what is loaded from now on and the changes after it are everything, or none could be had.
 * A stream is read by fetch and not by EventSource, which cannot send the token. A page that is hidden has none.
 */
export async function follow(onChange, onState, signal) {
  let isFirst = true;
  while (!signal.aborted) {
    await untilShown();
    const untilHidden = abortedWhenHidden(signal);
    try {
      const response = await send("events", { signal: untilHidden });
      isFirst &&= !response.ok;
      await readStream(response, onChange, onState);
    } catch (error) {
      if (isFirst && !untilHidden.aborted) onChange(null);
      isFirst = false;
      if (error instanceof Problem && (error.status === 401 || error.status === 403)) {
        onState(false, error.message);
        return;
      }
    }
    if (untilHidden.aborted) continue;
    onState(false, "the connection is lost; trying again");
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Wait until somebody may see the page. */
async function untilShown() {
  while (document.hidden)
    await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

/**
 * Return a signal that aborts with `signal`, and when the page is hidden: a browser has six connections to a host, so
 * pages in six other tabs would leave none for the one that is seen.
 */
function abortedWhenHidden(signal) {
  const ended = new AbortController();
  const look = () => {
    if (document.hidden || signal.aborted) ended.abort();
  };
  document.addEventListener("visibilitychange", look, { signal: ended.signal });
  signal.addEventListener("abort", look, { signal: ended.signal });
  look();
  return ended.signal;
}

async function readStream(response, onChange, onState) {
  if (!response.ok) await readAnswer(response);
  onState(true, "");
  onChange(null); // what changed while no stream was open
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let timer = null;
  let changes = [];
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const frames = (rest + part.value).split("\n\n");
    rest = frames.pop();
    changes = merged(changes, frames.map(changeOf).filter((change) => change !== undefined));
    if (timer === null && (changes === null || changes.length)) {
      timer = setTimeout(() => {
        onChange(changes);
        timer = null;
        changes = [];
      }, CHANGES_MS);
    }
  }
}

/** Return two lists of changes as one; null, which says that anything may have changed, contains every list. */
export function merged(one, other) {
  if (one === null || other === null || other.includes(null) || one.length + other.length > MOST_CHANGES) return null;
  return [...one, ...other];
}

/** Return the change of a frame of the stream; null for an overflow, undefined for a heartbeat. */
function changeOf(frame) {
  const kind = /^event: (.*)$/m.exec(frame)?.[1];
  if (kind === undefined) return undefined;
  if (kind === "overflow") return null;
  return { kind, ...JSON.parse(/^data: (.*)$/m.exec(frame)[1]) };
}

function send(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers, ...(token ? { "X-Vgpu-Token": token } : {}) };
  return fetch(new URL(`api/v1/${path}`, document.baseURI), { ...options, headers }).catch(unreachable);
}

/** Throw what was thrown; a browser tells of a connection that fails by a TypeError, as of a fault of a script. */
function unreachable(error) {
  throw error instanceof TypeError ? new Unreachable(error.message) : error;
}

async function readAnswer(response) {
  const isJson = /[/+]json/.test(response.headers.get("content-type") ?? "");
  const body = isJson ? await response.json().catch(unreachable) : null;
  if (response.ok && body !== null) return body;
  const errors = Array.isArray(body?.errors) ? body.errors : [];
  throw new Problem(response.status, body?.detail ?? errorText(response, body), errors);
}

/** Return the words about an answer that is not the admin REST's, such as the API server's while the extender starts. */
function errorText({ status, statusText }, body) {
  const why = typeof body?.message === "string" ? body.message : `${status} ${statusText}`;
  return status >= 500 ? `The admin REST does not answer now (${why}). The page tries again.` : why;
}
