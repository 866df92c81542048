// What changes something: a viewer does not see it, and while the daemon does not answer it is off.
import type { ComponentProps, MouseEvent, ReactNode } from "react";
import { role } from "../api/login";
import { link } from "../live/live";
import { useStore, useStorePart } from "../live/store";

/** Why nothing can be done now; null = it can. Nothing is queued in secret. */
export function useWhyNot(): string | null {
  return useStorePart(link, ({ state }) => state !== "live") ? "the daemon does not answer" : null;
}

/** Not for viewers. */
export function ForOperators({ children, instead = null }: { children: ReactNode; instead?: ReactNode }) {
  return useStore(role) === "viewer" ? instead : children;
}

/** A button that changes something; `hint` = the key that does the same. */
export function Act({ disabled = false, title, hint, children, onClick, ...others }: ComponentProps<"button"> & { hint?: string }) {
  const whyNot = useWhyNot();
  // What a double click means is meant once: it would start twice, or start what was only to be shown.
  const clicked = (event: MouseEvent<HTMLButtonElement>) => (event.detail > 1 ? event.preventDefault() : onClick?.(event));
  return (
    <ForOperators>
      <button type="button" {...others} onClick={clicked} disabled={disabled || whyNot !== null} title={whyNot ?? title}>
        {children} {hint && <kbd>{hint}</kbd>}
      </button>
    </ForOperators>
  );
}
