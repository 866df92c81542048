// What the form of a new run says, as the parameters that the daemon takes.
import { textOf, valueOf, type Field } from "./spec-schema";

/** Who does it where neither the form nor the configuration says; the command line has the same. */
export const DEFAULT_AGENT = "command";

export const CHECKS = {
  file: "a file is there",
  regex: "a file contains",
  junit: "a JUnit report has no failure",
  command: "a command exits with 0",
} as const;

/** One thing that must be true at the end; `pattern` is of `regex` alone. */
export type Check = { kind: keyof typeof CHECKS; text: string; pattern: string };
/** What stands in the fields, by parameter; `maxCostUsd` and `minutes` are those of its budget. */
export type Form = { texts: Readonly<Record<string, string>>; checks: readonly Check[] };
export type Draft = { spec: Record<string, unknown> } | { error: string };

type Artifact = { path: string; regex?: string; junit?: boolean };
type Contract = { artifacts?: Artifact[]; commands?: string[] };

/** The form of stored parameters; what its rows cannot say stays JSON in a field of its own. */
export function formOf(given: Readonly<Record<string, unknown>>): Form {
  const { artifacts = [], commands = [], ...contract } = (given["verification"] ?? {}) as Contract;
  const { maxCostUsd, maxSeconds, ...budget } = (given["budget"] ?? {}) as Record<string, unknown>;
  const rows = artifacts.map(rowOf);
  const others = artifacts.filter((_, at) => rows[at] === null);
  const left = { ...contract, ...(others.length > 0 ? { artifacts: others } : {}) };
  const texts: Record<string, unknown> = {
    ...given,
    verification: nothingOr(left),
    budget: nothingOr(budget),
    maxCostUsd,
    minutes: typeof maxSeconds === "number" ? maxSeconds / 60 : maxSeconds,
  };
  return {
    texts: Object.fromEntries(Object.entries(texts).map(([name, value]) => [name, textOf(value)])),
    checks: [...rows.filter((each) => each !== null), ...commands.map((text): Check => ({ kind: "command", text, pattern: "" }))],
  };
}

function nothingOr(value: object): object | null {
  return Object.keys(value).length === 0 ? null : value;
}

function rowOf({ path, regex, junit, ...more }: Artifact): Check | null {
  if (Object.keys(more).length > 0 || (regex !== undefined && junit === true)) return null;
  return { kind: junit === true ? "junit" : regex === undefined ? "file" : "regex", text: path, pattern: regex ?? "" };
}

/** The parameters, or what is missing. */
export function drafted(fields: readonly Field[], { texts, checks }: Form): Draft {
  const spec: Record<string, unknown> = {};
  for (const field of fields) {
    try {
      const value = valueOf(field, texts[field.name] ?? "");
      if (value !== undefined) spec[field.name] = value;
    } catch {
      return { error: `${field.name} must be JSON` };
    }
  }
  if (spec["task"] === undefined) return { error: "Say what to do." };
  if (spec["cwd"] === undefined && spec["continues"] === undefined) return { error: "Say in which directory." };
  const contract = contractOf(checks, (spec["verification"] ?? {}) as Contract);
  if (contract !== null) spec["verification"] = contract;
  const budget: Record<string, unknown> = { ...(spec["budget"] as object | undefined) };
  for (const [name, key, each] of [["maxCostUsd", "maxCostUsd", 1], ["minutes", "maxSeconds", 60]] as const) {
    const text = texts[name]?.trim() ?? "";
    if (text !== "" && !(Number(text) > 0)) return { error: `${name === "minutes" ? "Minutes" : "Dollars"}: a number above 0, not “${text}”.` };
    if (text !== "") budget[key] = Number(text) * each;
  }
  return { spec: Object.keys(budget).length === 0 ? spec : { ...spec, budget } };
}

function contractOf(checks: readonly Check[], more: Contract): Contract | null {
  const filled = checks.filter((each) => each.text.trim() !== "");
  const artifacts = filled.filter((each) => each.kind !== "command").map(artifactOf);
  const commands = filled.filter((each) => each.kind === "command").map((each) => each.text);
  const found = {
    ...more,
    ...(artifacts.length > 0 ? { artifacts: [...artifacts, ...(more.artifacts ?? [])] } : {}),
    ...(commands.length > 0 ? { commands: [...commands, ...(more.commands ?? [])] } : {}),
  };
  return Object.keys(found).length === 0 ? null : found;
}

function artifactOf({ kind, text, pattern }: Check): Artifact {
  return { path: text.trim(), ...(kind === "regex" ? { regex: pattern } : kind === "junit" ? { junit: true } : {}) };
}
