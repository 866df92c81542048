// What can be done with all chosen runs at once, and why not.
import { useState } from "react";
import { cancelAll, markRead, retry } from "../api/actions";
import type { RunRow } from "../api/types";
import { isEnded } from "../text/states";
import { Act, useWhyNot } from "./act";

/** From so many on, a cancel wants the number typed. */
const MANY = 10;

export function BulkBar({ runs, onClear }: { runs: readonly RunRow[]; onClear: () => void }) {
  const whyNot = useWhyNot();
  const [typed, setTyped] = useState("");
  const active = runs.filter((run) => !isEnded(run));
  const ended = runs.filter(isEnded);
  const isSure = active.length <= MANY || typed === String(active.length);
  const stop = () => {
    void cancelAll(active);
    onClear();
  };
  return (
    <div className="bulk" role="group" aria-label="chosen runs">
      <strong>{runs.length} chosen</strong>
      <Act
        disabled={ended.length === 0}
        onClick={() => {
          void Promise.all(ended.map(retry));
          onClear();
        }}
      >
        Retry {ended.length > 0 && ended.length}
      </Act>
      <Act
        disabled={ended.length === 0}
        onClick={() => {
          void markRead(ended);
          onClear();
        }}
      >
        Mark as read
      </Act>
      {active.length > MANY && (
        <input
          size={5}
          inputMode="numeric"
          aria-label={`type ${active.length} to cancel them`}
          placeholder={String(active.length)}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      )}
      <Act className="danger" disabled={active.length === 0 || !isSure} onClick={stop}>
        Cancel {active.length > 0 && active.length}
      </Act>
      <button type="button" className="plain" onClick={onClear}>
        Clear <kbd>Esc</kbd>
      </button>
      <span className="note">
        {whyNot ??
          (active.length === 0
            ? "All have ended: there is nothing to cancel."
            : !isSure
              ? `More than ${MANY} runs: type ${active.length} to cancel them.`
              : "")}
      </span>
    </div>
  );
}
