import { link } from "../live/live";
import { role } from "../api/login";
import { useStore, useStorePart } from "../live/store";

/** Why nothing can be done now; null = it can. Nothing is queued in secret. */
export function useWhyNot(): string | null {
  const isViewer = useStore(role) === "viewer";
  const isLost = useStorePart(link, ({ state }) => state !== "live");
  return isLost ? "the daemon does not answer" : isViewer ? "viewer: may look" : null;
}
