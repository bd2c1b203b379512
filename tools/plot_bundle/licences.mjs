// licences.mjs meta.json: names, versions, copyrights and licence texts of the packages that esbuild put into the bundle.
import {readFileSync} from "node:fs";

const outputs = Object.values(JSON.parse(readFileSync(process.argv[2], "utf8")).outputs);
const folders = new Set();
for (const output of outputs)
  for (const [file, part] of Object.entries(output.inputs)) {
    const found = file.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (found && part.bytesInOutput > 0) folders.add(found[1]);
  }
// By text: the packages of D3 differ in nothing but the year of the copyright.
const byText = new Map();
for (const name of [...folders].sort()) {
  const about = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  if (about.license !== "ISC") throw new Error(`${name}: licence ${about.license} has not been looked at`);
  let file = "";
  try {
    file = readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim();
  } catch {
    throw new Error(`${name}: no licence text`);
  }
  const [copyright, ...rest] = file.split("\n");
  const text = rest.join("\n").trim();
  if (!byText.has(text)) byText.set(text, []);
  byText.get(text).push(`${name} ${about.version}: ${copyright}`);
}
for (const [text, names] of byText) console.log(`${names.join("\n")}\n\n${text}\n`);
