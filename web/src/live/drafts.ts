// What somebody is writing survives updates, reloads and a lost connection.
import { useState } from "react";

const keyOf = (name: string) => `subagents:draft:${name}`;

/** Keep a draft for whoever opens its field next; `""` = forget it. */
export function keepDraft(name: string, text: string): void {
  if (text === "") sessionStorage.removeItem(keyOf(name));
  else sessionStorage.setItem(keyOf(name), text);
}

export function useDraft(name: string): [string, (text: string) => void, () => void] {
  const [text, setText] = useState(() => sessionStorage.getItem(keyOf(name)) ?? "");
  const set = (next: string) => {
    setText(next);
    keepDraft(name, next);
  };
  return [text, set, () => set("")];
}
