// Waiting runs by what they wait for, so that forty runs behind one limit are one row.
import type { RunRow, Wait } from "../api/types";
import { counted } from "./amounts";
import { plain } from "./marks";
import { stateOf } from "./states";

export type Cause = {
  key: string;
  words: string;
  state: string;
  since: string | null;
  endsAt: string | null;
  givesUpAt: string | null;
  runs: RunRow[];
};

const NAMES_SHOWN = 3;

/** Groups of equal cause, the largest first; within one, who is next comes first. */
export function causesOf(runs: readonly RunRow[]): Cause[] {
  const found = new Map<string, Cause>();
  for (const run of runs) {
    const { key, words } = causeOf(run);
    const { endsAt = null, givesUpAt = null } = run.wait ?? {};
    const cause = found.get(key);
    if (cause === undefined) {
      found.set(key, { key, words, state: stateOf(run).word, since: run.phaseSinceAt, endsAt, givesUpAt, runs: [run] });
      continue;
    }
    cause.runs.push(run);
    cause.since = earlier(cause.since, run.phaseSinceAt);
    cause.endsAt = earlier(cause.endsAt, endsAt);
    cause.givesUpAt = earlier(cause.givesUpAt, givesUpAt);
  }
  const all = [...found.values()];
  for (const each of all) each.runs.sort((a, b) => place(a) - place(b));
  return all.sort((a, b) => b.runs.length - a.runs.length || (a.since ?? "").localeCompare(b.since ?? ""));
}

/** What it waits for in the end: who waits for a run that waits for a lane waits for that lane. */
function causeOf(run: RunRow): { key: string; words: string } {
  const { wait } = run;
  if (wait === null) return { key: `${run.runId}/why`, words: run.why ?? "" };
  switch (wait.kind) {
    case "provider":
      return { key: `provider/${wait.name}`, words: `${wait.name}’s provider takes no more${wait.status === null ? "" : ` (${wait.status})`}` };
    case "lane":
      return { key: `lane/${wait.name}`, words: `no slot in lane ${wait.name} (${wait.used === null ? `${wait.slots} in the cluster` : `${wait.used}/${wait.slots} used`})` };
    case "plan":
      return { key: `plan/${wait.name}`, words: run.why ?? `others of plan ${wait.name}` };
    case "runs":
      return { key: `runs/${wait.runs.map((each) => each.runId).join()}`, words: runsOf(wait) };
    default:
      return { key: `${run.runId}/${wait.kind}`, words: run.why ?? wait.kind };
  }
}

function runsOf(wait: Wait): string {
  const names = wait.runs.slice(0, NAMES_SHOWN).map((each) => plain(each.label));
  const more = wait.runsTotal - names.length;
  const which = `${counted(wait.runsTotal, "run")}: ${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  const { root } = wait;
  const isIndirect = root !== null && !wait.runs.some((each) => each.runId === root.runId);
  if (root === null || root.kind === null) return isIndirect ? `${which}; in the end for ${plain(root.label)}` : which;
  const cause = root.name === null ? root.kind : `${root.kind} ${root.name}`;
  return `${which}; ${isIndirect ? `in the end for ${plain(root.label)}, which waits` : "waits"} for ${cause}`;
}

function place(run: RunRow): number {
  return run.wait?.place ?? Number.MAX_SAFE_INTEGER;
}

function earlier(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}
