// One stream for all tabs of a browser: the tab that holds a lock reads it and tells the others.
//
// A tab that is looked at takes the lock, also from one that is hidden by now: timers of hidden ones are slowed down
// by the browser, and a reconnect by one of them could take a minute.
import type { Happening } from "./changes";
import { follow, type Link, type Listener } from "./stream";

const NAME = "subagents:stream";
let leads = false;

/** Whether this tab reads the stream for all. */
export function isLeader(): boolean {
  return leads;
}

type Told = { happening: Happening } | { link: Link } | { hello: true } | { hidden: true };

/** Follow the stream, by ourselves or through another tab, as long as the page is there. */
export function followShared(after: () => number | null, listener: Listener): void {
  if (!("locks" in navigator)) {
    // Without a secure context there are no locks: then each tab reads for itself.
    void follow(after, listener, new AbortController().signal, true);
    return;
  }
  const channel = new BroadcastChannel(NAME);
  let link: Link = { state: "connecting", since: Date.now(), tries: 0 };
  let isFresh = true;
  let isInLine = false;
  const tell = (told: Told) => channel.postMessage(told);
  const heard: Listener = {
    happened: listener.happened,
    linked: (next) => {
      link = next;
      isFresh = false;
      listener.linked(next);
    },
  };
  channel.onmessage = ({ data }: MessageEvent<Told>) => {
    if ("hello" in data) {
      if (leads) tell({ link });
    } else if ("hidden" in data) {
      if (!document.hidden && !leads) void lead(true);
    } else if (!leads) {
      if ("link" in data) heard.linked(data.link);
      else heard.happened(data.happening);
    }
  };
  const lead = async (steal: boolean): Promise<void> => {
    if (!steal && isInLine) return;
    isInLine ||= !steal;
    const stopped = new AbortController();
    try {
      await navigator.locks.request(NAME, steal ? { steal } : {}, async () => {
        isInLine &&= steal;
        leads = true;
        const both: Listener = {
          happened: (happening) => (tell({ happening }), heard.happened(happening)),
          linked: (next) => (tell({ link: next }), heard.linked(next)),
        };
        await follow(after, both, stopped.signal, isFresh);
        // Logged out: hold the lock, or the next tab would ask the same.
        await new Promise(() => {});
      });
    } catch {
      // Another tab took it; we hear from it, and stand in line for when it goes.
      stopped.abort();
      leads = false;
      void lead(false);
    }
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && leads) tell({ hidden: true });
    if (!document.hidden && !leads) void lead(true);
  });
  tell({ hello: true });
  void lead(!document.hidden);
}
