// Chooses the view by the address after #, shows errors, asks for a token, and reloads the view when something changes.

import * as address from "./address.js";
import * as api from "./api.js";
import * as card from "./card.js";
import * as cards from "./cards.js";
import { element } from "./dom.js";
import * as fit from "./fit.js";
import * as history from "./history.js";
import * as pod from "./pod.js";
import * as pods from "./pods.js";
import * as usage from "./usage.js";
import { clock } from "./format.js";
import * as waiting from "./waiting.js";

const VIEWS = { cards, waiting, pods, fit, usage, history };
const root = document.getElementById("view");
const connection = document.getElementById("connection");
const menu = document.getElementById("menu");
const waitingCount = document.getElementById("waiting-count");

const FIRST_EVENT_MS = 1000; // then a view is loaded without the stream
const RELOAD_MS = 60000; // no event says that what is shown has become old
let reload = async () => {};
let isLive = false; // whether the first answer about the stream has come: what is loaded then misses no change

/**
 * Show the view of the address. A view's `open` fills a folder of its own and returns how it is loaded; it is called with
 * what has changed since, as `api.follow` has it; an empty list says that time has passed. `open` gets a function that
 * loads the view again: what is wrong with a filter is then said, and unsaid when the filter is mended.
 */
function showView() {
  const [wanted, ...rest] = address.path();
  const name = Object.hasOwn(VIEWS, wanted) ? wanted : "cards"; // an object inherits toString and others
  const [parts, pageOfOne] = { pods: [2, pod], cards: [1, card] }[name] ?? [];
  const view = parts && rest.length === parts ? pageOfOne : VIEWS[name];
  const error = element("p", { class: "error", role: "alert", hidden: true });
  const staleNote = element("p", { class: "error", role: "status", hidden: true });
  const content = element("section");
  root.replaceChildren(error, staleNote, content);
  api.whenStale((since) => {
    staleNote.hidden = !since;
    staleNote.textContent = since && `What this page shows is of ${clock(since)}: vgpushare has heard nothing since.`;
    content.classList.toggle("stale", Boolean(since));
  });
  document.title = `${view.title(rest)} – vgpushare`;
  for (const link of document.querySelectorAll("nav a")) {
    const isHere = link.getAttribute("href") === `#/${name}`;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const load = oneAtATime(view.open(content, rest, () => load()), error, content);
  reload = load;
  if (isLive) reload();
}

/** Return a function that loads at most once at a time; calls while loading load once more afterwards. */
function oneAtATime(load, error, content) {
  let isRunning = false;
  let unseen = []; // what has changed since the last load began
  return async (newChanges = null) => {
    unseen = api.merged(unseen, newChanges);
    if (isRunning) return;
    isRunning = true;
    try {
      do {
        const changes = unseen;
        unseen = [];
        await attempt(() => load(changes), error, content);
      } while (unseen === null || unseen.length);
    } finally {
      isRunning = false;
    }
  };
}

async function attempt(load, error, content) {
  try {
    await load();
    error.hidden = true;
    content.hidden = false;
  } catch (problem) {
    if (problem instanceof api.Problem && problem.status === 401) {
      askForToken(problem.message);
      return;
    }
    if (problem instanceof api.Problem && problem.status === 403 && !location.hash) {
      location.replace("#/pods"); // a tenant sees its pods; the cards need the right to list them
      return;
    }
    content.hidden = problem.status === 403; // controls of what may not be seen
    error.replaceChildren(...errorContent(problem));
    error.hidden = false;
  }
}

/** Return what is wrong, and where to go on. A browser's own words about a connection that fails say nothing to people. */
function errorContent(problem) {
  if (problem instanceof api.Unreachable) return ["The admin REST cannot be reached. The page tries again."];
  if (problem.status !== 403) return [problem.message];
  return [`${problem.message}. `, element("a", { href: "#/pods" }, "Your pods")];
}

function askForToken(why) {
  const input = element("input", { type: "password", id: "token", autocomplete: "off", size: 60, required: true });
  const submit = (event) => {
    event.preventDefault();
    api.setToken(input.value);
    start();
  };
  root.replaceChildren(
    element("h1", {}, "Log in"),
    element("p", { class: "error", role: "alert" }, api.hasToken() ? `This token is not accepted: ${why}` : "This page needs a token."),
    element("form", { class: "controls", submit },
      element("label", { for: "token" }, "Token "), input, element("button", {}, "Log in")),
    element("p", {}, "A token of your own account, or one that this command prints:"),
    element("pre", {}, "kubectl create token vgpu-admin -n vgpu-system --audience admin.vgpu.io"),
    element("p", {}, "It is kept for this tab of the browser only. The command ",
      element("code", {}, "vgpu dashboard"), " opens this page with the rights of your kubeconfig."),
  );
  input.focus();
}

async function countWaiting() {
  const summary = await api.summary().catch(() => null); // the view says what is wrong
  waitingCount.textContent = summary?.pods.Pending ?? "";
  waitingCount.hidden = !summary?.pods.Pending;
}

let heardAt = null;

/** Figures look old while nothing is heard of the server, and the page says since when. */
function showConnection(isOpen, why) {
  if (isOpen) heardAt = null;
  else heardAt ??= new Date();
  connection.textContent = isOpen ? "live" : `${why} (not live since ${clock(heardAt)})`;
  connection.className = isOpen ? "good" : "bad";
  root.classList.toggle("stale", !isOpen);
}

let closeStream = new AbortController();

function start() {
  closeStream.abort();
  closeStream = new AbortController();
  isLive = false;
  showView();
  const changed = (changes) => {
    isLive = true;
    reload(changes);
    countWaiting();
  };
  const { signal } = closeStream;
  api.follow(changed, showConnection, signal);
  setTimeout(() => {
    if (!isLive && !signal.aborted) changed(null); // a proxy may keep the stream's begin to itself
  }, FIRST_EVENT_MS);
}

/** While the stream is open, it says all that has changed in a list: a view that keeps one need not read it again. */
setInterval(() => reload(heardAt === null ? [] : null), RELOAD_MS);

/** On a small screen the views are behind a button. */
function openMenu(isOpen) {
  menu.setAttribute("aria-expanded", String(isOpen));
}

menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || menu.getAttribute("aria-expanded") !== "true") return;
  openMenu(false);
  menu.focus();
});

addEventListener("hashchange", () => {
  openMenu(false);
  showView();
});
start();
