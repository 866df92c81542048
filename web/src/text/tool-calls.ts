// A run's tool calls, from the lines of its transcript, and what was used meanwhile, from its journal.

type Line = { seq: number; ts: number; type: string; text: string; attempt: number };
/** Totals of an attempt so far; null = not told. */
export type Used = { at: number; attempt: number; tokens: number | null; costUsd: number | null };
/** A call; `from` is null where only its end was told, `to` while it goes on. What was used is told since the call before that has a number. */
export type Call = { seq: number; attempt: number; name: string; asked: string; from: number | null; to: number | null; isError: boolean; tokens: number | null; costUsd: number | null };

/** `▶ Bash`, or `❌ Bash (1m 2s, exit 1)`; what it was asked is on the next line, what came out behind an arrow. */
const HEAD = /^(▶|✅|❌) (.*?)(?: \(((\d+)m )?([\d.]+)s\b[^()]*\)| \(exit \d+\))?$/u;

/** The calls in their order; a line that looks like one and is no line of a tool is none. */
export function callsOf(lines: readonly Line[], used: readonly Used[]): Call[] {
  const calls: Call[] = [];
  for (const { seq, ts, type, text, attempt } of lines) {
    const [head = "", next = ""] = text.split("\n");
    const [, sign, name = "", , minutes = "0", seconds] = HEAD.exec(head) ?? [];
    if (type !== "tool" || sign === undefined) continue;
    const asked = next.startsWith("→ ") ? "" : next;
    if (sign === "▶") {
      calls.push({ seq, attempt, name, asked, from: ts, to: null, isError: false, tokens: null, costUsd: null });
      continue;
    }
    const isIt = (each: Call) => each.to === null && each.attempt === attempt && each.name === name && (asked === "" || each.asked === asked);
    let call = calls.find(isIt);
    if (call === undefined) calls.push((call = { seq, attempt, name, asked, from: null, to: null, isError: false, tokens: null, costUsd: null }));
    Object.assign(call, { to: ts, isError: sign === "❌" });
    if (seconds !== undefined) call.from = ts - 1_000 * (60 * Number(minutes) + Number(seconds));
  }
  for (const [at, call] of calls.entries()) {
    const own = used.filter((each) => each.attempt === call.attempt && each.at <= (call.to ?? Infinity));
    const before = own.findLast((each) => each.at <= (calls.slice(0, at).findLast((other) => other.attempt === call.attempt)?.to ?? -Infinity));
    const last = own.at(-1);
    if (last === undefined || last === before) continue;
    call.tokens = last.tokens === null ? null : last.tokens - (before?.tokens ?? 0);
    call.costUsd = last.costUsd === null ? null : last.costUsd - (before?.costUsd ?? 0);
  }
  return calls;
}
