// What needs somebody, by its cause: who mends the cause mends them all.

type Item = { kind: string; runId: string; label: string; text: string; sinceAt: string | null };
type Row = { agentId: string; planId: string | null; outcome: { reason: string | null; error: string | null } | null };

/** Items of one cause, the newest first, and those that failed only because one of these did. */
export type Cause<I> = { items: readonly I[]; dependants: readonly I[] };

/** Errors that tell no cause: equal ones of another plan or label may well have another. */
const SAYS_NOTHING = /^(exit code|signal|killed by( signal)?) \S+$/;

/** The newest first. The same error of the same agent is one cause; other needs stand alone. */
export function byCause<I extends Item>(items: readonly I[], rows: ReadonlyMap<string, Row>): Cause<I>[] {
  const failed = new Map(items.filter((each) => each.kind === "failed").map((each) => [each.runId, each]));
  const causes = new Map<string, { items: I[]; dependants: I[] }>();
  for (const item of [...items].sort((a, b) => (b.sinceAt ?? "").localeCompare(a.sinceAt ?? ""))) {
    let of = item;
    for (let root: I | undefined = item; item.kind === "failed" && root !== undefined; root = failed.get(rootOf(rows.get(of.runId)))) of = root;
    const row = rows.get(of.runId);
    const key = of.kind === "failed" ? JSON.stringify([row?.agentId, of.text, SAYS_NOTHING.test(of.text) && (row?.planId ?? of.label)]) : `${of.kind}/${of.runId}`;
    const cause = causes.get(key) ?? { items: [], dependants: [] };
    causes.set(key, cause);
    (of === item ? cause.items : cause.dependants).push(item);
  }
  return [...causes.values()];
}

/** The run whose failure led to this one, over whichever others; "" = it failed by itself. */
function rootOf(row: Row | undefined): string {
  if (row?.outcome?.reason !== "dependency_failed") return "";
  return [...(row.outcome.error ?? "").matchAll(/Dependency run (\S+)/g)].at(-1)?.[1] ?? "";
}
