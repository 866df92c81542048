// What somebody can do with a run. Each one says at once that it is under way, and what came of it.
import { get, post, Problem, remove, runPath } from "./client";
import { role } from "./login";
import type { Message, PlanReceipt, RunRow, RunStatus, SpawnReceipt, WorkerRequest } from "./types";
import { touched } from "../live/live";
import { Store } from "../live/store";
import { GRACE_MS, toldDone, toldFailed, toldPlanned } from "../live/toasts";
import { counted } from "../text/amounts";
import { person, plain } from "../text/marks";

type Named = { runId: string; label: string };

/** What is under way, by run: `cancelling …` */
export const underWay = new Store<Readonly<Record<string, string>>>({});

function mark(runId: string, word: string | null): void {
  underWay.update(({ [runId]: _, ...rest }) => (word === null ? rest : { ...rest, [runId]: word }));
}

/** Whether this browser may change something. A viewer has no buttons for it, but has keys. */
function mayAct(): boolean {
  if (role.get() !== "viewer") return true;
  toldFailed("Nothing was done: you are a viewer", "A viewer may look, and change nothing");
  return false;
}

const AT_ONCE = 4;

/** Do it with all of them, a few at a time, with a word in the row until it is done; those with which it was. */
async function doingAll<R extends Named>(runs: readonly R[], word: string, act: (run: R) => Promise<unknown>): Promise<R[]> {
  if (!mayAct()) return [];
  const [left, done, failures]: [R[], R[], string[]] = [[...runs], [], []];
  const work = async () => {
    for (let run = left.shift(); run !== undefined; run = left.shift()) {
      mark(run.runId, `${word} …`);
      try {
        await act(run);
        touched(run.runId);
        done.push(run);
      } catch (error) {
        failures.push(reason(error));
      } finally {
        mark(run.runId, null);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (failures.length > 0) {
    const of = runs.length === 1 ? named(runs, "run") : `${failures.length} of ${counted(runs.length, "run")}`;
    toldFailed(`${of}: ${word} did not work`, failures[0] ?? null);
  }
  return done;
}

async function doing(run: Named, word: string, act: () => Promise<unknown>): Promise<boolean> {
  return (await doingAll([run], word, act)).length > 0;
}

export function reason(error: unknown): string {
  if (error instanceof Problem) return error.hint === null ? error.message : `${error.message}. ${error.hint}`;
  return error instanceof Error ? error.message : String(error);
}

/** Time to think better of a cancel or an interrupt. The daemon keeps it, also when this page is closed. */
export const GRACE = `${GRACE_MS / 1000}s`;

/** Plan its end in five seconds, and say how many runs below end with it. */
export async function cancel(run: Named): Promise<void> {
  if (!mayAct()) return;
  const below = await activeBelow(run.runId);
  const others = below === 0 ? "" : ` and ${counted(below, "run")} below it`;
  const isPlanned = await doing(run, "cancelling", () => post(runPath(run.runId, "cancel"), { after: GRACE }));
  if (!isPlanned) return;
  toldPlanned(`${plain(run.label)}${others} will be cancelled in 5 s`, below === 0 ? "Keep it" : "Keep them", () => void keep(run));
}

/** Take a planned cancel back. */
export function keep(run: Named): Promise<boolean> {
  return doing(run, "keeping", () => remove(runPath(run.runId, "cancel")));
}

/** All of them, and all below them: later where they are many, for as long as asking for it takes. */
export function cancelAll(runs: readonly Named[]): void {
  if (!mayAct()) return;
  const seconds = GRACE_MS / 1000 + Math.ceil(runs.length / 50);
  const planned = doingAll(runs, "cancelling", (run) => post(runPath(run.runId, "cancel"), { after: `${seconds}s` }));
  const keepAll = async () => void (await doingAll(await planned, "keeping", (run) => remove(runPath(run.runId, "cancel"))));
  toldPlanned(`${named(runs, "run")} and all below will be cancelled in ${seconds} s`, "Keep them", () => void keepAll(), seconds * 1000);
}

async function activeBelow(runId: string): Promise<number> {
  try {
    return (await get<RunStatus>(runPath(runId, "status"))).childrenActive;
  } catch {
    return 0;
  }
}

/** Plan the end of its turn; nothing comes of it when the turn has ended by then. */
export async function interrupt(run: Named): Promise<void> {
  const isPlanned = await doing(run, "interrupting", () => post(runPath(run.runId, "interrupt"), { after: GRACE }));
  const stop = () => void doing(run, "keeping", () => remove(runPath(run.runId, "interrupt")));
  if (isPlanned) toldPlanned(`The turn of ${plain(run.label)} ends in 5 s`, "Let it work", stop);
}

export async function pause(run: Named): Promise<void> {
  const isDone = await doing(run, "pausing", () => post<RunRow>(runPath(run.runId, "pause")));
  if (isDone) toldDone(`${plain(run.label)} is paused`, () => void resume(run));
}

export function resume(run: Named): Promise<boolean> {
  return doing(run, "resuming", () => post<RunRow>(runPath(run.runId, "resume")));
}

/** Start them again from their stored parameters; the ids of the new ones. */
export async function retry(runs: readonly Named[]): Promise<string[]> {
  const started: string[] = [];
  await doingAll(runs, "retrying", async (run) => {
    const { runId } = await post<SpawnReceipt>(runPath(run.runId, "retry"));
    touched(runId);
    started.push(runId);
  });
  if (started.length > 0) toldDone(runs.length === 1 ? `${named(runs, "run")} was started again as ${started[0]}` : `${counted(started.length, "run was", "runs were")} started again`);
  return started;
}

/** Start them again in five seconds: a key that is pressed by mistake spends nothing. Only this page
 * knows of it, so nothing is started when it is closed before.
 */
export function retrySoon(runs: readonly Named[], then: (runId: string) => void = () => {}): void {
  soon(named(runs, "run"), async () => (await retry(runs)).forEach(then));
}

export function soon(what: string, start: () => Promise<unknown>): void {
  if (!mayAct()) return;
  const timer = setTimeout(() => void start(), GRACE_MS);
  toldPlanned(`${what} will be started again in 5 s`, "Leave it", () => clearTimeout(timer));
}

/** Start the failed steps of a plan again, and those that waited for them; the plan that they are of. */
export async function retryPlan(id: string): Promise<string | null> {
  if (!mayAct()) return null;
  try {
    const found = await post<PlanReceipt>(`/v1/plans/${encodeURIComponent(id)}/retry`);
    toldDone(`Started ${counted(found.receipts.length, "run")} again`);
    return found.planId;
  } catch (error) {
    toldFailed("The plan was not started again", reason(error));
    return null;
  }
}

function named(runs: readonly Named[], noun: string): string {
  return runs.length === 1 ? plain(runs[0]?.label ?? "") : counted(runs.length, noun);
}

export function redeliver(run: Named): Promise<boolean> {
  return doing(run, "delivering again", () => post(runPath(run.runId, "redeliver")));
}

/** Mark how they ended as read; who asked for them gets their results anyway. */
export async function markRead(runs: readonly Named[]): Promise<void> {
  const marked = await doingAll(runs, "marking as read", (run) => post(runPath(run.runId, "dismiss")));
  const undo = () => void doingAll(marked, "marking as unread", (run) => remove(runPath(run.runId, "dismiss")));
  if (marked.length > 0) toldDone(`Marked ${named(marked, "result")} as read`, undo);
}

/** Take a message in the name of the session that it is for, which does not get it then. */
export async function takeFor(message: Message): Promise<void> {
  if (!mayAct()) return;
  try {
    await post("/v1/inbox/ack", { messageIds: [message.id] });
  } catch (error) {
    return toldFailed("It was not taken", reason(error));
  }
  touched(message.runId);
  const again = message.kind === "announcement" ? () => void redeliver(message) : null;
  toldDone(`Taken for ${plain(person(message.sessionKey))}, which does not get it now`, again);
}

/** A message for a run at work; true = it was taken. */
export function steer(run: Named, message: string): Promise<boolean> {
  return doing(run, "steering", () => post(runPath(run.runId, "steer"), { message }));
}

/** A message for its session, whoever works in it now; may start the run that continues it. */
export function send(run: Named, message: string): Promise<boolean> {
  return doing(run, "sending", () => post(runPath(run.runId, "send"), { message }));
}

export type Decision = "answer" | "deny" | "approve";

/** Answer a question; the first answer counts, and who comes second hears whose it was. */
export async function answer(
  run: Named,
  requestId: string,
  response: string,
  decision: Decision,
): Promise<boolean> {
  if (!mayAct()) return false;
  try {
    const found = await post<WorkerRequest>(`/v1/requests/${encodeURIComponent(requestId)}/respond`, {
      response,
      decision,
    });
    touched(run.runId);
    if (found.status !== "already answered") return true;
    lost(run, response, found.answer, found.by);
  } catch (error) {
    if (error instanceof Problem && error.status === 409) {
      lost(run, response, error.details["answer"], error.details["by"]);
      touched(run.runId);
    } else toldFailed("The answer was not taken", reason(error));
  }
  return false;
}

function lost(run: Named, mine: string, theirs: unknown, by: unknown): void {
  const whose = typeof by === "string" ? `By ${plain(person(by))}: ` : "";
  const what = typeof theirs === "string" ? `“${plain(theirs)}”. ` : "";
  const again = mine === "" ? null : { word: "Send as steer", run: () => void steer(run, mine) };
  toldFailed(`The answer was not taken: ${plain(run.label)} was answered before`, `${whose}${what}`, again);
}
