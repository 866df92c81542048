// TypeScript types of the daemon's answers, from its own OpenAPI document: src/api/schema.ts.
//
//   npm run types
//
// Each build begins with it, so that a page which no longer fits the API does not compile; the file is in no commit.
// PYTHON names the interpreter that has the package; ../.venv/bin/python is the default.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const file = join(web, "src/api/schema.ts");
const python = process.env.PYTHON ?? join(web, "../.venv/bin/python");
const program = [
  "import msgspec, sys",
  "from subagents.api.server.app import parts",
  "from subagents.api.server.openapi import document",
  "found = document([each for part in parts() for each in part.ROUTES])",
  "sys.stdout.buffer.write(msgspec.json.encode(found))",
].join("\n");

const found = execFileSync(python, ["-c", program], { maxBuffer: 64 * 1024 * 1024 });
const text = `// Written by \`npm run types\` from the daemon's OpenAPI document.\n${astToString(
  await openapiTS(JSON.parse(found.toString()), { rootTypes: true, rootTypesNoSchemaPrefix: true }),
)}`;

writeFileSync(file, text);
