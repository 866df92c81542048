// One connection to /v1/events, read until it breaks, and taken up again behind the last number.
import type { Happening, LiveEvent } from "./changes";
import { FrameReader } from "./sse";

export type Link = {
  state: "connecting" | "live" | "lost" | "loggedOut";
  /** Since when it is like this, ms. */
  since: number;
  /** Tries since it was live. */
  tries: number;
};

export type Listener = {
  happened: (happening: Happening) => void;
  linked: (link: Link) => void;
};

/** One for each change of a run, and what a notification is made of. */
const WANTED = "/v1/events?types=run,budget_alert";
/** The daemon says something every 15 s; when it does not, nobody is there any more. */
const SILENT_MS = 20_000;
const RETRY_MS = [250, 500, 1_000];
const UNAUTHORIZED = 401;

/** Follow until `signal` aborts.
 *
 * @param after The last number that was seen; null = only what is new.
 * @param isFresh Nothing is shown yet: what comes before the first connection was missed by nobody.
 */
export async function follow(
  after: () => number | null,
  listener: Listener,
  signal: AbortSignal,
  isFresh: boolean,
): Promise<void> {
  let tries = 0;
  let missed = !isFresh && after() === null;
  while (!signal.aborted) {
    const wasLive = await connection(after(), listener, signal, () => {
      if (missed || tries > 0) listener.happened({ kind: "connected" });
      listener.linked({ state: "live", since: Date.now(), tries: 0 });
      tries = 0;
      missed = false;
    });
    if (signal.aborted) return;
    if (wasLive === "unauthorized") {
      listener.linked({ state: "loggedOut", since: Date.now(), tries: 0 });
      return;
    }
    tries += 1;
    listener.linked({ state: "lost", since: Date.now(), tries });
    await pause(RETRY_MS[Math.min(tries - 1, RETRY_MS.length - 1)] ?? 0, signal);
  }
}

async function connection(
  after: number | null,
  listener: Listener,
  signal: AbortSignal,
  opened: () => void,
): Promise<"ended" | "unauthorized"> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENT_MS);
  try {
    const response = await fetch(after === null ? WANTED : `${WANTED}&after=${after}`, {
      headers: { accept: "text/event-stream" },
      signal: AbortSignal.any([signal, silence.signal]),
      cache: "no-store",
    });
    if (response.status === UNAUTHORIZED) return "unauthorized";
    if (!response.ok || response.body === null) return "ended";
    const frames = new FrameReader();
    const bytes = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let isOpen = false;
    for (;;) {
      const { done, value } = await bytes.read();
      if (done) return "ended";
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT_MS);
      for (const frame of frames.take(value)) {
        if (frame.event === "reset") {
          listener.happened({ kind: "reset", seq: Number(frame.id ?? 0) });
        } else if (frame.data !== "") {
          listener.happened({ kind: "event", event: eventOf(frame.event, frame.data) });
        } else if (frame.id !== null) {
          listener.happened({ kind: "number", seq: Number(frame.id) });
        }
      }
      // The first block says where we are: what a snapshot taken from now on lacks will come here.
      if (!isOpen) opened();
      isOpen = true;
    }
  } catch {
    return "ended";
  } finally {
    clearTimeout(timer);
  }
}

function eventOf(name: string, data: string): LiveEvent {
  const found = JSON.parse(data) as { seq: number; runId: string; label?: string };
  return { seq: found.seq, runId: found.runId, event: name, label: found.label ?? "" };
}

function pause(length: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, length);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
