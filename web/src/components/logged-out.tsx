import type { Problem } from "../api/client";
import { Command } from "./states";

const TITLES: Record<string, string> = { unreachable: "The daemon does not answer.", forbidden: "This page is not open to you." };

/** Nobody the daemon knows, or nobody it takes; what to do about it. */
export function LoggedOut({ problem }: { problem: Problem | null }) {
  return (
    <main className="logged-out">
      <h1>{TITLES[problem?.code ?? ""] ?? "You are not logged in."}</h1>
      {problem !== null && problem.code !== "unreachable" && <p>{problem.message}</p>}
      {problem?.code === "forbidden" ? (
        <p>{problem.hint}</p>
      ) : (
        <>
          <p>Get a new link in a shell on this machine:</p>
          <Command text="subagents ui" />
          <p>Who sent you a link can send another.</p>
        </>
      )}
    </main>
  );
}
