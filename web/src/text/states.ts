// What a run is in one word, with the shape and hue by which it is told without reading.

export type Shape =
  | "bubble"
  | "diamond"
  | "ring"
  | "dashedTick"
  | "lines"
  | "dashed"
  | "turning"
  | "bars"
  | "tick"
  | "wave"
  | "half"
  | "cross"
  | "hands"
  | "triangle"
  | "slash";
export type Hue = "you" | "work" | "idle" | "ok" | "bad";
export type State = { word: string; shape: Shape; hue: Hue };

const STATES: Record<string, [Shape, Hue]> = {
  asks: ["bubble", "you"],
  blocked: ["diamond", "you"],
  running: ["ring", "work"],
  verifying: ["dashedTick", "work"],
  queued: ["lines", "idle"],
  waiting: ["dashed", "idle"],
  retrying: ["turning", "idle"],
  paused: ["bars", "idle"],
  ok: ["tick", "ok"],
  vacuous: ["wave", "you"],
  partial: ["half", "you"],
  error: ["cross", "bad"],
  timeout: ["hands", "bad"],
  lost: ["triangle", "bad"],
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

/** The state that a word of the wire names. */
export function named(word: string): State {
  const [shape, hue] = STATES[ALIASES[word] ?? word] ?? ["ring", "idle"];
  return { word, shape, hue };
}

/** Words of phases, for those that have no chip of their own. */
const ALIASES: Record<string, string> = {
  spawning: "running",
  ending: "running",
  retry_wait: "retrying",
  failed: "error",
};

export const ACTIVE_PHASES = ["spawning", "running", "ending", "verifying"];
export const WAITING_PHASES = ["waiting", "queued", "retry_wait"];

export function isEnded(run: { outcome: unknown }): boolean {
  return run.outcome !== null;
}
