// Prints the text of the dashboard's overview of a summary, which is JSON on standard input: node dashboard_text.mjs FOLDER
class Made {
  constructor() { this.children = []; }
  append(...children) { this.children.push(...children); }
  setAttribute() {}
  addEventListener() {}
  get text() { return this.children.map((child) => (child instanceof Made ? child.text : String(child))).join(" "); }
}
globalThis.document = { createElement: () => new Made(), createElementNS: () => new Made() };
const { overview } = await import(`${process.argv[2]}/overview.js`);
let read = "";
for await (const part of process.stdin) read += part;
for (const made of overview(JSON.parse(read))[0].children) console.log(made.text.replaceAll("\u00a0", " ").trim());
