// What somebody is writing survives updates, reloads and a lost connection.
import { useState } from "react";

export function useDraft(name: string): [string, (text: string) => void, () => void] {
  const key = `subagents:draft:${name}`;
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? "");
  const set = (next: string) => {
    setText(next);
    if (next === "") sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, next);
  };
  return [text, set, () => set("")];
}
