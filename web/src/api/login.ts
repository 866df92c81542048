// The link of `subagents ui` carries a code that works once: it becomes a cookie that only the
// daemon reads, and leaves the address before anything is shown.
import { get, post, Problem, setCsrf } from "./client";
import type { OwnLogin } from "./types";
import { Store } from "../live/store";

/** What this browser may do; a viewer may look. */
export const role = new Store<string>("operator");

/** Whether it may see more than runs. */
export const seesAll = () => role.get() !== "viewer";

/** Exchange the code of the address, if there is one; what went wrong, or null. */
export async function logIn(): Promise<Problem | null> {
  const code = new URLSearchParams(location.hash.slice(1)).get("k");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  try {
    const login = await (code === null ? get<OwnLogin>("/v1/login") : post<OwnLogin>("/v1/login", { code }));
    role.set(login.role);
    setCsrf(login.csrf);
    return null;
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
