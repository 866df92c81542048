// Has graphs placed beside the page, which stays quick meanwhile.
import { useEffect, useState } from "react";
import type { Placement, Wanted } from "../text/graph";
import workerUrl from "./layout-worker?worker&url";

type Policy = { createScriptURL: (url: string) => unknown };
type Policies = { createPolicy: (name: string, rules: { createScriptURL: (url: string) => string }) => Policy };

// The one thing of the page for which its Content-Security-Policy allows a Trusted Types policy, and
// it lets nothing through but this one file. Older browsers have no such types, and need none.
const policy = (globalThis as { trustedTypes?: Policies }).trustedTypes?.createPolicy("layout", {
  createScriptURL: (url) => {
    if (url !== workerUrl) throw new TypeError("only the layout of graphs is a worker");
    return url;
  },
});

/** Where everything goes; the last answer until there is one. `"failed"` = there will be none. */
export function useLayout(wanted: Wanted): Placement | "failed" | null {
  const [found, setFound] = useState<Placement | "failed" | null>(null);
  // States change more often than what depends on what: only this has it placed anew.
  const key = JSON.stringify(wanted);
  useEffect(() => {
    const worker = new Worker((policy?.createScriptURL(workerUrl) ?? workerUrl) as string, { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<Placement>) => setFound(data);
    worker.onerror = () => setFound("failed");
    worker.postMessage(wanted);
    return () => worker.terminate();
    // The key has all of it.
    // eslint-disable-next-line
  }, [key]);
  return found;
}
