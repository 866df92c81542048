// The link of `subagents ui` carries a key that works once: it becomes a cookie that only the
// daemon reads, and leaves the address before anything is shown.
import { post, Problem } from "./client";

/** Exchange the key of the address, if there is one; what went wrong, or null. */
export async function logIn(): Promise<Problem | null> {
  const key = new URLSearchParams(location.hash.slice(1)).get("k");
  if (key === null) return null;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    await post("/v1/login", { key });
    return null;
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
