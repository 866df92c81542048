// Keys of the page. They are off while a field has focus, and can be switched off altogether.
import { useEffect, useRef } from "react";
import { preferences } from "./preferences";

export type Keys = Record<string, (event: KeyboardEvent) => void>;

const layers: { current: Keys }[] = [];
let prefix: string | null = null;
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

/** The keys of what is shown; the newest layer that knows a key has it. */
export function useKeys(keys: Keys, enabled = true): void {
  const layer = useRef(keys);
  layer.current = keys;
  useEffect(() => {
    if (!enabled) return undefined;
    layers.push(layer);
    return () => void layers.splice(layers.indexOf(layer), 1);
  }, [enabled]);
}

export function startKeys(): void {
  document.addEventListener("keydown", pressed);
}

/** What a key that is held goes on doing; all else it does once. */
const MOVES: ReadonlySet<string> = new Set(["j", "k", "ArrowDown", "ArrowUp"]);

function pressed(event: KeyboardEvent): void {
  const name = nameOf(event);
  if (event.isComposing || (event.repeat && !MOVES.has(name))) return;
  if (name === "Ctrl k") return run(name, event);
  const target = event.target as HTMLElement;
  if (isField(target)) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (!preferences.get().keys || document.querySelector("dialog:modal") !== null) return;
  // A button in focus is pressed by these; only what has no meaning of its own is ours.
  if ((event.key === "Enter" || event.key === " ") && target.closest("button, a, summary, select") !== null) return;
  if (prefix !== null) {
    const both = `${prefix} ${name}`;
    prefix = null;
    return run(both, event);
  }
  if (name === "g") {
    prefix = name;
    clearTimeout(prefixTimer);
    prefixTimer = setTimeout(() => (prefix = null), 1_500);
    return;
  }
  run(name, event);
}

function run(name: string, event: KeyboardEvent): void {
  const found = layers.findLast((each) => name in each.current);
  if (found === undefined) return;
  event.preventDefault();
  found.current[name]?.(event);
}

function nameOf(event: KeyboardEvent): string {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") return "Ctrl k";
  return event.key === " " ? "Space" : event.key;
}

function isField(target: HTMLElement): boolean {
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
