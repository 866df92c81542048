// Bars that overlap in time, put into as few rows as they need.

export type Span = { from: number; to: number };

/** Rows of `spans`, in which none overlaps another; each goes into the first row that is free. */
export function rowsOf<S extends Span>(spans: readonly S[]): S[][] {
  const rows: S[][] = [];
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    const free = rows.find((row) => (row.at(-1)?.to ?? 0) <= span.from);
    if (free === undefined) rows.push([span]);
    else free.push(span);
  }
  return rows;
}
