// Prints the figures of the usage view of reports, which are JSON on standard input: node usage_figures.mjs FOLDER
const { cardHours, csv } = await import(`${process.argv[2]}/usagefigures.js`);
let read = "";
for await (const part of process.stdin) read += part;
const { reports, total, parts, namespaces } = JSON.parse(read);
const files = Object.entries(reports).map(([by, report]) => [by, csv(by, report)]);
console.log(JSON.stringify({ files: Object.fromEntries(files), chart: cardHours(total, parts, namespaces) }));
