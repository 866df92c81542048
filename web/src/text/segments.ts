// A run's time, cut into pieces by what it was spent on.

export type Kind = "work" | "wait" | "person" | "check" | "ok" | "bad";
export type Segment = { from: number; to: number; kind: Kind };

const KINDS: Record<string, Kind> = {
  waiting: "wait", queued: "wait", retry_wait: "wait", spawning: "wait",
  running: "work", ending: "work", verifying: "check",
};

/** What was done in each phase, from the events of a journal.
 *
 * @param events In order, each with the phase after it.
 * @param asked When questions were open; a worker that asks waits for a person.
 * @param until Where the last phase ends when the run has not.
 */
export function segmentsOf(
  events: readonly { at: number; phase: string | null }[],
  asked: readonly { from: number; to: number | null }[],
  until: number,
): Segment[] {
  const found: Segment[] = [];
  events.forEach(({ at, phase }, index) => {
    const kind = KINDS[phase ?? ""];
    const end = events[index + 1]?.at ?? until;
    if (kind === undefined || end <= at) return;
    const last = found.at(-1);
    if (last !== undefined && last.kind === kind && last.to === at) last.to = end;
    else found.push({ from: at, to: end, kind });
  });
  return found.flatMap((each) => (each.kind === "work" ? withAsked(each, asked) : [each]));
}

function withAsked(work: Segment, asked: readonly { from: number; to: number | null }[]): Segment[] {
  const found: Segment[] = [];
  let from = work.from;
  for (const each of [...asked].sort((a, b) => a.from - b.from)) {
    const begin = Math.max(each.from, from);
    const end = Math.min(each.to ?? work.to, work.to);
    if (end <= begin) continue;
    if (begin > from) found.push({ from, to: begin, kind: "work" });
    found.push({ from: begin, to: end, kind: "person" });
    from = end;
  }
  if (from < work.to) found.push({ from, to: work.to, kind: "work" });
  return found;
}

/** What most of the time went into, and how much of it; null = there is none. */
export function mostly(segments: readonly Segment[]): { kind: Kind; length: number; of: number } | null {
  const lengths = new Map<Kind, number>();
  for (const { kind, from, to } of segments) lengths.set(kind, (lengths.get(kind) ?? 0) + to - from);
  const [first] = [...lengths].sort(([, a], [, b]) => b - a);
  if (first === undefined) return null;
  return { kind: first[0], length: first[1], of: [...lengths.values()].reduce((a, b) => a + b, 0) };
}
