// Charts of figures over time, drawn by uPlot (vendor/uplot). Each has a name and a summary in words.

import uPlot from "./uPlot.esm.js";
import { element } from "./dom.js";

const HEIGHT = 150;

// Paper has another width and other colors than the screen, and a person may change the colors of the screen.
for (const query of ["print", "(prefers-color-scheme: dark)"]) {
  matchMedia(query).addEventListener("change", () => {
    for (const drawn of document.querySelectorAll(".chart > [role=img]")) drawn.redraw?.();
  });
}

/**
 * Return a chart as an element. `lines` are {name, values, color, dash}; `untilMs` are their times.
 * `write` makes text of a value, `period` is [from, until] in Unix milliseconds, `most` the top of the scale if known.
 */
export function chart(name, untilMs, lines, write, period, most = null) {
  const figure = element("figure", { class: "chart" }, element("figcaption", {}, name));
  if (!untilMs.length) {
    figure.append(element("p", { class: "empty" }, "Nothing was measured in this time."));
    return figure;
  }
  const said = lines.map((line) => `${line.name}: ${summary(line.values, write)}`).join("; ");
  const drawn = element("div", { role: "img", "aria-label": `${name}. ${said}` });
  const legend = element("ul", { class: "legend" }, lines.map((line) => {
    const sign = element("i", { class: line.dash ? "sign dash" : "sign", "aria-hidden": "true" });
    sign.style.setProperty("--sign", line.color.startsWith("--") ? `var(${line.color})` : line.color);
    return element("li", {}, sign, " ", element("bdi", {}, line.name), " ", element("small", {}, summary(line.values, write)));
  }));
  figure.append(drawn, legend);
  drawn.redraw = () => {
    drawn.plot?.destroy();
    drawn.plot = draw(drawn, drawn.clientWidth, untilMs, lines, write, period, most);
  };
  const observer = new ResizeObserver(([{ contentRect }]) => {
    if (!drawn.isConnected || contentRect.width < 50) return;
    if (drawn.plot) drawn.plot.setSize({ width: contentRect.width, height: HEIGHT });
    else drawn.plot = draw(drawn, contentRect.width, untilMs, lines, write, period, most);
  });
  observer.observe(figure);
  return figure;
}

function draw(into, width, untilMs, lines, write, period, most) {
  const text = css("--muted");
  const grid = { stroke: css("--line"), width: 1 };
  const series = lines.map((line) => ({
    label: line.name, stroke: css(line.color), width: 1.5, dash: line.dash ? [5, 4] : [], points: { show: untilMs.length < 3 },
    fill: line.fill ? `${css(line.color)}33` : undefined,
  }));
  const options = {
    width, height: HEIGHT, legend: { show: false }, cursor: { y: false }, padding: [8, 20, 0, 0],
    scales: { x: { range: () => period.map((ms) => ms / 1000) }, y: { range: (_, low, high) => [0, most ?? (high > 0 ? high * 1.1 : 1)] } },
    axes: [
      { stroke: text, grid, ticks: grid },
      { stroke: text, grid, ticks: grid, size: 74, values: (_, values) => values.map(write), ...(most && { splits: () => [0, most / 2, most] }) },
    ],
    series: [{}, ...series],
  };
  return new uPlot(options, [untilMs.map((ms) => ms / 1000), ...lines.map((line) => line.values)], into);
}

function summary(values, write) {
  const known = values.filter((value) => value !== null);
  if (!known.length) return "not reported";
  return `last ${write(known.at(-1))}, most ${write(Math.max(...known))}`;
}

function css(name) {
  return name.startsWith("--") ? getComputedStyle(document.documentElement).getPropertyValue(name).trim() : name;
}
