// Whether what is shown is so: a dot in the bar, and a bar below it when it is not.
import { useEffect } from "react";
import { asOf, link } from "../live/live";
import { useStore } from "../live/store";
import { announcement } from "../live/toasts";
import { clockSeconds } from "../text/times";

export function LinkDot() {
  const { state } = useStore(link);
  const isLive = state === "live";
  return (
    <span className={isLive ? "link live" : "link lost"} title={isLive ? "changes show as they happen" : "not up to date"}>
      <svg viewBox="0 0 10 10" width="8" height="8" aria-hidden="true">
        {isLive ? (
          <circle cx="5" cy="5" r="4" fill="currentColor" />
        ) : (
          <circle cx="5" cy="5" r="3.5" fill="none" stroke="currentColor" strokeWidth="1.5" strokeDasharray="2 1.5" />
        )}
      </svg>
      <span>{isLive ? "live" : "lost"}</span>
    </span>
  );
}

export function LostBar() {
  const { state, since, tries } = useStore(link);
  const isLost = state === "lost";
  useEffect(() => {
    if (isLost) announcement.set("The daemon does not answer.");
    return () => {
      if (isLost) announcement.set("The daemon is back.");
    };
  }, [isLost]);
  if (!isLost) return null;
  return (
    <div className="lost-bar">
      <strong>The daemon does not answer. What you see is as of {clockSeconds(Math.min(asOf.get(), since))}.</strong>
      <span>Workers go on without it. Trying again each second{tries > 1 && ` (${tries} times so far)`}. Nothing has to be reloaded.</span>
    </div>
  );
}
