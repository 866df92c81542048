import type { Problem } from "../api/client";
import { Command } from "./states";

/** Nobody the daemon knows; how to become somebody. */
export function LoggedOut({ problem }: { problem: Problem | null }) {
  return (
    <main className="logged-out">
      <h1>{problem?.code === "unreachable" ? "The daemon does not answer." : "You are not logged in."}</h1>
      {problem !== null && problem.code !== "unreachable" && <p>{problem.message}</p>}
      <p>Get a new link in a shell on this machine:</p>
      <Command text="subagents ui" />
    </main>
  );
}
