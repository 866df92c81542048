// What the daemon says of a run that somebody is still writing.
import { useEffect, useState } from "react";
import { post } from "../api/client";
import type { DryRun } from "../api/types";
import { DEFAULT_AGENT, type Draft } from "../text/new-run";

const PAUSE_MS = 400;

type Asked = { asked: string; planned?: DryRun; problem?: unknown };

/** What it says of what stands there now; null = it was not asked yet. */
export function useDryRun(draft: Draft): Asked | null {
  const asked = "spec" in draft ? JSON.stringify(draft.spec) : null;
  const [found, setFound] = useState<Asked | null>(null);
  useEffect(() => {
    if (asked === null) return;
    let isWanted = true;
    const ask = async () => {
      let answer: Asked;
      try {
        const body = { spec: JSON.parse(asked) as unknown, defaultAgent: DEFAULT_AGENT };
        answer = { asked, planned: await post<DryRun>("/v1/runs/dry-run", body) };
      } catch (problem) {
        answer = { asked, problem };
      }
      if (isWanted) setFound(answer);
    };
    const timer = setTimeout(() => void ask(), PAUSE_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [asked]);
  return found?.asked === asked ? found : null;
}
