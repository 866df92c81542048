// Find a run by its words, or go to a page, without leaving the keys.
import { useDeferredValue, useId, useState } from "react";
import { useLocation } from "wouter";
import { useRuns } from "../api/queries";
import { StateChip } from "./chip";
import { Dialog } from "./dialog";
import { PAGES, runAt } from "./routes";
import { Said } from "./said";
import type { RunRow } from "../api/types";

type Choice = { to: string; name: string; run: RunRow | null };

export function Palette({ onClose }: { onClose: () => void }) {
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const [, navigate] = useLocation();
  const id = useId();
  const asked = useDeferredValue(words.trim());
  const runs = useRuns({ q: asked || null, limit: 12, archived: asked !== "" }).data?.runs ?? [];
  const pages = [...PAGES, { path: "/new", name: "New run" }].filter((page) =>
    page.name.toLowerCase().includes(words.trim().toLowerCase()),
  );
  const choices: Choice[] = [
    ...pages.map((page) => ({ to: page.path, name: page.name, run: null })),
    ...runs.map((run) => ({ to: runAt(run.runId), name: run.label, run })),
  ];
  const chosen = Math.min(at, choices.length - 1);
  const go = (choice: Choice | undefined) => {
    if (choice === undefined) return;
    onClose();
    navigate(choice.to);
  };
  return (
    <Dialog title="Find a run, go to a page" onClose={onClose} className="palette" hideTitle>
      <input
        autoFocus
        role="combobox"
        aria-label="a run or a page"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={choices.length > 0 ? `${id}-${chosen}` : undefined}
        placeholder="a run's label or task, or a page"
        value={words}
        onChange={(event) => {
          setWords(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, choices.length - 1));
          else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
          else if (event.key === "Enter") go(choices[chosen]);
          else return;
          event.preventDefault();
        }}
      />
      <ul id={id} role="listbox" aria-label="found">
        {choices.map((choice, index) => (
          <li
            key={choice.to}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => go(choice)}
          >
            {choice.run === null ? (
              <span className="note">page</span>
            ) : (
              <StateChip run={choice.run} />
            )}
            <Said text={choice.name} />
            {choice.run !== null && <span className="note">{choice.run.agentId}</span>}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
