import { link } from "../live/live";
import { useStorePart } from "../live/store";

/** Why nothing can be done now; null = it can. Nothing is queued in secret. */
export function useWhyNot(): string | null {
  return useStorePart(link, ({ state }) => (state === "live" ? null : "the daemon does not answer"));
}
