// What a browser loads when it opens every page: all of it must stay small.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const LIMIT = 210_000;
const assets = new URL("../dist/assets/", import.meta.url).pathname;
const sizes = readdirSync(assets).map((name) => [name, gzipSync(readFileSync(join(assets, name))).length]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
console.log(`${total.toLocaleString("en")} bytes gzipped in ${sizes.length} files`);
if (total > LIMIT) {
  console.error(`more than ${LIMIT.toLocaleString("en")}: ${JSON.stringify(sizes.sort((a, b) => b[1] - a[1]).slice(0, 5))}`);
  process.exit(1);
}
