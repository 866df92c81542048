// Failures of one plan that say the same are one row: who mends the cause mends them all.

type Item = { kind: string; runId: string; text: string };
type Row = { planId: string | null };

/** Items in their order; those that equal an earlier failure of the same plan are put beside it. */
export function folded<I extends Item>(items: readonly I[], rows: ReadonlyMap<string, Row>): I[][] {
  const groups = new Map<string, I[]>();
  for (const item of items) {
    const plan = item.kind === "failed" ? rows.get(item.runId)?.planId : null;
    const key = plan == null ? `${item.kind}/${item.runId}` : JSON.stringify([plan, item.text]);
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return [...groups.values()];
}
