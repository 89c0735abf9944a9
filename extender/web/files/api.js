// Requests to the admin REST, below the address of the page: the page works behind a proxy's path too.

const TOKEN = "vgpu-token"; // kept for the browser's tab only
const RETRY_MS = 3000;
const CHANGES_MS = 1000; // at most one reload a second, however much changes

/** An answer that is an error. `fields` has what is wrong with which field of the request. */
export class Problem extends Error {
  constructor(status, message, fields = []) {
    super(message);
    this.status = status;
    this.fields = fields;
  }
}

export function setToken(token) {
  sessionStorage.setItem(TOKEN, token.trim());
}

export function hasToken() {
  return Boolean(sessionStorage.getItem(TOKEN));
}

/** GET a path below /api/v1. A query's lists become repeated parameters; empty values are left out. */
export async function get(path, query = {}) {
  const body = await fetched(path, query);
  note(path, body.staleSince ?? "");
  return body;
}

async function fetched(path, query) {
  const parameters = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).filter((each) => each !== "" && each !== undefined)
      .map((each) => [name, each]));
  const text = new URLSearchParams(parameters).toString();
  return answer(await send(`${path}${text ? `?${text}` : ""}`));
}

const stale = new Map(); // by path, since when its last answer is old
let onStale = () => {};

/** Call `listener` with the earliest time since which any answer of the view is old, or with an empty text. */
export function whenStale(listener) {
  stale.clear();
  onStale = listener;
  onStale("");
}

function note(path, since) {
  stale.set(path, since);
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
  return answer(await send(path, { method: "POST", headers, body: body === undefined ? null : JSON.stringify(body) }));
}

/**
 * Call `onChange` when pods, cards or nodes change, and `onState` with whether the stream is open, until `signal` aborts.
 * A stream is read by fetch and not by EventSource, which cannot send the token.
 */
export async function follow(onChange, onState, signal) {
  while (!signal.aborted) {
    try {
      await read(await send("events", { signal }), onChange, onState);
    } catch (error) {
      if (error instanceof Problem && (error.status === 401 || error.status === 403)) {
        onState(false, error.message);
        return;
      }
    }
    if (!signal.aborted) onState(false, "the connection is lost; trying again");
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function read(response, onChange, onState) {
  if (!response.ok) await answer(response);
  onState(true, "");
  onChange(); // what changed while no stream was open
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let timer = null;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (timer === null && /^event: /m.test(part.value)) {
      timer = setTimeout(() => { timer = null; onChange(); }, CHANGES_MS);
    }
  }
}

function send(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers, ...(token ? { "X-Vgpu-Token": token } : {}) };
  return fetch(new URL(`api/v1/${path}`, document.baseURI), { ...options, headers });
}

async function answer(response) {
  const isJson = /[/+]json/.test(response.headers.get("content-type") ?? "");
  const body = isJson ? await response.json() : null;
  if (response.ok && body !== null) return body;
  const errors = Array.isArray(body?.errors) ? body.errors : [];
  throw new Problem(response.status, body?.detail ?? absent(response, body), errors);
}

/** Return the words about an answer that is not the admin REST's, such as the API server's while the extender starts. */
function absent({ status, statusText }, body) {
  const why = typeof body?.message === "string" ? body.message : `${status} ${statusText}`;
  return status >= 500 ? `The admin REST does not answer now (${why}). The page tries again.` : why;
}
