// What a run is in one word, with the shape and hue by which it is told without reading.

export type Shape =
  | "bubble" | "diamond" | "ring" | "dashedTick" | "lines" | "dashed" | "turning" | "bars"
  | "tick" | "wave" | "half" | "cross" | "hands" | "triangle" | "slash";
export type Hue = "you" | "work" | "idle" | "ok" | "bad";
export type State = { word: string; shape: Shape; hue: Hue };

/** By the words of the wire: shape, hue, and which of six words is shown where it is another one. */
const STATES: Record<string, [Shape, Hue, string?]> = {
  waiting: ["dashed", "idle"],
  queued: ["lines", "idle", "waiting"],
  retrying: ["turning", "idle", "waiting"],
  retry_wait: ["turning", "idle", "waiting"],
  paused: ["bars", "idle", "waiting"],
  working: ["ring", "work"],
  spawning: ["ring", "work", "working"],
  running: ["ring", "work", "working"],
  ending: ["ring", "work", "working"],
  verifying: ["dashedTick", "work", "working"],
  "needs you": ["bubble", "you"],
  asks: ["bubble", "you", "needs you"],
  blocked: ["diamond", "you", "needs you"],
  ok: ["tick", "ok"],
  vacuous: ["wave", "you", "ok (vacuous)"],
  failed: ["cross", "bad"],
  partial: ["half", "bad", "failed"],
  error: ["cross", "bad", "failed"],
  timeout: ["hands", "bad", "failed"],
  lost: ["triangle", "bad", "failed"],
  cancelled: ["slash", "idle"],
};

/** As much of a run as says its state; a row, a node of a tree and a link all have it. */
export type Standing = {
  outcome: { status: string } | null;
  phase?: string;
  runStatus?: string;
  pendingRequestCount?: number;
  vacuous?: boolean;
  verdict?: { status: string; passed: number; checks: number } | null;
};

/** The state of a run; an unknown word of a newer daemon is shown as it is. */
export function stateOf(run: Standing): State {
  const status = run.outcome?.status;
  if (status === "ok" && run.vacuous) return named("vacuous");
  if (status !== undefined) {
    const state = named(status);
    const { passed, checks } = run.verdict ?? { passed: 0, checks: 0 };
    return checks > 0 ? { ...state, word: `${state.word} ${passed}/${checks}` } : state;
  }
  if (run.pendingRequestCount) return named("asks");
  if (run.phase === "verifying") return named("verifying");
  return named(run.runStatus ?? run.phase ?? "running");
}

/** The state that a word names, one of the wire or one that is shown. */
export function named(word: string): State {
  const [shape, hue, shown] = STATES[word] ?? ["ring", "idle"];
  return { word: shown ?? word, shape, hue };
}

export const ACTIVE_PHASES = ["spawning", "running", "ending", "verifying"];
export const WAITING_PHASES = ["waiting", "queued", "retry_wait"];

export function isEnded(run: { outcome: unknown }): boolean {
  return run.outcome !== null;
}

/** Whether its worker takes a message at work, goes on with a session, or has a turn to end. */
export function can(run: { resolved: { [key: string]: unknown } }, ability: "steer" | "resume" | "interrupt"): boolean {
  return (run.resolved.abilities as Record<string, boolean> | undefined)?.[ability] === true;
}

/** Of attempts not all are retries: after a limit of a provider or a restart it goes on without using one. */
export function retriesOf({ attemptsMax, retriesUsed }: { attemptsMax: number; retriesUsed: number }): string {
  const most = Math.max(attemptsMax - 1, retriesUsed);
  return most === 0 ? "none" : `${retriesUsed} of ${most} used`;
}
