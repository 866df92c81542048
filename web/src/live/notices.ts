// What comes to who does not look, behind one switch: notifications of the browser for a question, the
// first failure of a plan, and a budget that is used to 80 %.
import { get, runPath } from "../api/client";
import type { AttentionItem, RunDetail, RunPage, RunsQuery } from "../api/types";
import { plain } from "../text/marks";
import { preferences, prefer } from "./preferences";
import { Store } from "./store";
import { isLeader } from "./tabs";
import { announcement, toldFailed } from "./toasts";

export type Peeked = { runId: string; label: string };

/** The run of which the whole is shown over the page; null = none. */
export const peeked = new Store<Peeked | null>(null);

const FAILED = "error,timeout,lost,partial";
const FAILED_ROWS = 200;
export const WARN_PERCENT = 80;

/** Nothing here on a page that came neither by TLS nor from this machine. */
export const canNotify = "Notification" in window;

/** Switch them on, which asks the browser, or off. */
export async function notifyMe(wanted: boolean): Promise<void> {
  const isAllowed = !wanted || (await Notification.requestPermission()) === "granted";
  prefer({ notifies: wanted && isAllowed });
  if (!isAllowed) toldFailed("The browser forbids notifications of this page", "It is allowed in the browser’s settings of this address.");
}

const known = new Set<string>();
let isFirst = true;

/** What needs somebody now; what did so when the page was opened is no news, but a question is said once. */
export function needed(items: readonly AttentionItem[]): void {
  const fresh = items.filter((each) => !known.has(keyOf(each)));
  for (const each of fresh) {
    known.add(keyOf(each));
    if (each.requestId !== null) announcement.set(`${plain(each.label)} asks: ${plain(each.text)}`);
  }
  if (!isFirst && fresh.length > 0 && isWanted()) void tell(fresh);
  isFirst = false;
}

const keyOf = (item: AttentionItem) => item.requestId ?? `${item.kind}/${item.runId}`;

/** One tab tells, the one that was looked at last, and only while nobody looks at it. */
function isWanted(): boolean {
  return preferences.get().notifies && canNotify && isLeader() && !document.hasFocus();
}

async function tell(items: readonly AttentionItem[]): Promise<void> {
  for (const each of items) if (each.requestId !== null) notify(each.requestId, `${plain(each.label)} asks`, each.text, each);
  const failed = new Set(items.filter((each) => each.kind === "failed").map((each) => each.runId));
  if (failed.size === 0) return;
  const ask = async (query: RunsQuery) => (await get<RunPage>("/v1/runs", { outcome: FAILED, ...query })).runs;
  const rows = await ask({ sort: "ended", limit: FAILED_ROWS });
  const plans = new Set(rows.filter((run) => failed.has(run.runId)).map((run) => run.planId));
  for (const plan of plans) {
    const [first] = plan === null ? [] : await ask({ plan, sort: "ended_oldest", limit: 1 });
    if (first && failed.has(first.runId)) notify(`plan/${plan}`, `Plan ${plain(first.planName ?? first.planId ?? "")}: its first failure`, `${first.label}: ${first.why ?? ""}`, first);
  }
}

/** An alert of a run's budget came: at half of it there is nothing to do yet. */
export async function budgetUsed(runId: string): Promise<void> {
  if (!isWanted()) return;
  const run = await get<RunDetail>(runPath(runId));
  const percent = run.budget?.percent ?? 0;
  if (percent >= WARN_PERCENT) notify(`budget/${runId}`, `${plain(run.label)} used ${percent} % of its budget`, run.budget?.text ?? "", run);
}

/** A second one with the same tag takes the place of the first. */
function notify(tag: string, title: string, body: string, run: Peeked): void {
  try {
    const shown = new Notification(title, { tag, body: plain(body), icon: `${import.meta.env.BASE_URL}icon.svg` });
    shown.onclick = () => (window.focus(), shown.close(), peeked.set(run));
  } catch {
    prefer({ notifies: false });
    toldFailed("The browser shows no notifications of pages", null);
  }
}
