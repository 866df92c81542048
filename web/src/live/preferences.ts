// What this browser remembers of how somebody wants the page.
import { Store } from "./store";

export type SavedFilter = { name: string; search: string };
export type Preferences = {
  theme: "system" | "light" | "dark";
  absoluteTimes: boolean;
  keys: boolean;
  notifies: boolean;
  saved: SavedFilter[];
};

const NAME = "subagents:preferences";
const DEFAULTS: Preferences = { theme: "system", absoluteTimes: false, keys: true, notifies: false, saved: [] };

function remembered(): Preferences {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(NAME) ?? "{}") as Partial<Preferences>) };
  } catch {
    return DEFAULTS;
  }
}

export const preferences = new Store<Preferences>(remembered());

export function prefer(change: Partial<Preferences>): void {
  preferences.update((before) => ({ ...before, ...change }));
  // Not what another tab told: one of another version would write it otherwise, and tell it back, for ever.
  try {
    localStorage.setItem(NAME, JSON.stringify(preferences.get()));
  } catch {
    // Private windows may keep nothing: then it holds until the page is closed.
  }
}

function apply(): void {
  document.documentElement.dataset["theme"] = preferences.get().theme;
}

preferences.subscribe(apply);
// What another tab was told holds here, too.
addEventListener("storage", () => preferences.set(remembered()));
apply();

/** From what is seen now to the other one. */
export function switchTheme(): void {
  const { theme } = preferences.get();
  const isDark = theme === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
  prefer({ theme: isDark ? "light" : "dark" });
}
