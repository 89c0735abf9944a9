// What happened, the latest first: decisions, starts, ends, events of cards, and administrators' actions.

import * as address from "./address.js";
import * as api from "./api.js";
import { badge, choice, element, field, moreButton, podLink, table, updateChildren } from "./dom.js";
import { KINDS, ordered, sentence } from "./entries.js";
import { beginning, clock } from "./format.js";

const COLUMNS = [["Time", "time"], ["Event", ""], ["About", "name"], ["Node", "name"], ["Details", "text"]];
const PERIODS = [["1h", "hour"], ["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]];
const DEFAULTS = { name: "", kind: "", since: "24h" };

export const title = () => "History";

export function open(root, _, reload) {
  const chosen = address.chosen(DEFAULTS);
  let limit = 100;
  const list = element("div", {}, element("p", { class: "empty" }, "Loading…"));
  const choose = (name) => (value) => {
    chosen[name] = value;
    address.keep(chosen, DEFAULTS);
    reload();
  };
  const [label] = field("Pod", { type: "search", placeholder: "name", value: chosen.name, change: (event) => choose("name")(event.target.value.trim()) });
  root.append(
    element("h1", {}, "History"),
    element("div", { class: "controls" }, label,
      choice("Event", [["", "any"], ...Object.entries(KINDS)], chosen.kind, choose("kind")),
      choice("in the last", PERIODS, chosen.since, choose("since"))),
    list,
  );

  async function load() {
    const page = await api.get("history", { ...chosen, limit });
    updateChildren(list,
      page.storedSince ? element("p", { class: "empty" }, beginning(page).trim()) : "",
      table(COLUMNS, ordered(page.items).map(row), "No event matches. Choose a longer time, or any event."),
      moreButton(page, limit, (rows) => {
        limit = rows;
        reload();
      }),
    );
  }
  return load;
}

function row({ time, kind, namespace, event }) {
  const { pod, node, gpu } = event;
  const about = pod ? podLink(namespace, pod.name) : gpu ?? "";
  return [clock(time), badge(KINDS[kind] ?? kind), about, node ?? "", sentence({ kind, event })];
}
