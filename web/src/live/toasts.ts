// What was just done and can be undone, what is about to be done and can be stopped, what failed.
import { Store } from "./store";

export type Toast = {
  id: number;
  text: string;
  kind: "done" | "wait" | "failed";
  /** What its button does; the key z presses that of the newest. */
  action: { word: string; run: () => void } | null;
  /** More of it, smaller. */
  detail: string | null;
};

export const toasts = new Store<readonly Toast[]>([]);
/** Said to screen readers: outcomes of actions, questions, the connection. Nothing else. */
export const announcement = new Store<string>("");

const DONE_MS = 8_000;
const FAILED_MS = 20_000;
/** How long somebody can think better of a cancel, an interrupt or a retry by a key. */
export const GRACE_MS = 5_000;
let number = 0;

export function dismiss(id: number): void {
  toasts.update((before) => before.filter((each) => each.id !== id));
}

function show(toast: Omit<Toast, "id">, length: number): number {
  number += 1;
  const id = number;
  toasts.update((before) => [...before, { ...toast, id }].slice(-4));
  announcement.set(toast.text);
  setTimeout(() => dismiss(id), length);
  return id;
}

export function toldDone(text: string, undo: (() => void) | null = null): void {
  const action = undo && { word: "Undo", run: undo };
  show({ text, kind: "done", action, detail: null }, DONE_MS);
}

export function toldFailed(text: string, detail: string | null, action: Toast["action"] = null): void {
  show({ text, kind: "failed", action, detail }, FAILED_MS);
}

/** What the daemon does in some seconds, unless somebody thinks better of it. */
export function toldPlanned(text: string, word: string, keep: () => void, length = GRACE_MS): void {
  show({ text, kind: "wait", action: { word, run: keep }, detail: null }, length);
}

export function pressNewest(): void {
  const newest = toasts.get().findLast((each) => each.action !== null);
  if (newest === undefined) return;
  dismiss(newest.id);
  newest.action?.run();
}
