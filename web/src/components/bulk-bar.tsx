// What can be done with all chosen runs at once, and why not.
import { useState } from "react";
import { Link } from "wouter";
import { cancelAll, markRead, retrySoon } from "../api/actions";
import type { RunRow } from "../api/types";
import { isEnded } from "../text/states";
import { Act, useWhyNot } from "./act";
import { compareAt } from "./routes";

/** From so many on, a cancel or a retry wants the number typed. */
const MANY = 10;

export function BulkBar({ runs, note, onClear }: { runs: readonly RunRow[]; note: string; onClear: () => void }) {
  const whyNot = useWhyNot();
  const [typed, setTyped] = useState("");
  const active = runs.filter((run) => !isEnded(run));
  const ended = runs.filter(isEnded);
  const isSure = ({ length }: readonly RunRow[]) => length > 0 && (length <= MANY || typed === String(length));
  const done = (act: () => unknown) => () => (void act(), onClear());
  const asked = [ended.length > MANY && `${ended.length} to retry`, active.length > MANY && `${active.length} to cancel`].filter(Boolean).join(", ");
  return (
    <div className="bulk" role="group" aria-label="chosen runs">
      <strong>{runs.length.toLocaleString("en")} chosen</strong>
      <Act disabled={!isSure(ended)} onClick={done(() => retrySoon(ended))}>
        Retry {ended.length > 0 && ended.length}
      </Act>
      <Act disabled={ended.length === 0} onClick={done(() => markRead(ended))}>
        Mark {ended.length > 0 && ended.length} as read
      </Act>
      {runs.length === 2 && (
        <Link href={compareAt(runs[0]?.runId ?? "", runs[1]?.runId ?? "")} className="button">Compare</Link>
      )}
      <Act className="danger" disabled={!isSure(active)} onClick={done(() => cancelAll(active))}>
        Cancel {active.length > 0 && active.length}
      </Act>
      {asked !== "" && (
        <label>
          type {asked} <input size={5} inputMode="numeric" value={typed} onChange={(event) => setTyped(event.target.value)} />
        </label>
      )}
      <button type="button" className="plain" onClick={onClear}>
        Clear <kbd>Esc</kbd>
      </button>
      <span className="note">{whyNot ?? ([note, active.length === 0 && "All have ended: there is nothing to cancel."].filter(Boolean).join(" "))}</span>
    </div>
  );
}
