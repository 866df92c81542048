// What a structured event says, in one line.
import type { StreamEvent } from "../api/types";
import { dollars } from "./amounts";
import { span } from "./times";

type Fields = Partial<Record<keyof StreamEvent, unknown>>;

export const BAD = new Set(["api_error", "stuck", "failure_loop", "budget_alert", "context_pressure", "same_path"]);

const SIGN = /\p{Extended_Pictographic}\uFE0F?\s*/u;

/** A line that is pushed to agents and chats, without its sign and without the name beside it. */
export function withoutSign(text: string): string {
  return text.replace(/^\[subagent:[^\]]*\] /, "").replace(SIGN, "");
}

export function alertWords(event: Fields): string {
  const text = (name: keyof StreamEvent) => (event[name] === undefined || event[name] === null ? "" : String(event[name]));
  switch (event.event) {
    case "completion":
      return `ended: ${text("status")}${text("error") && `, ${text("error")}`}`;
    case "stuck":
      return `nothing said for ${span(Number(event.silentMs ?? 0))}${text("lastActivity") && `; last: ${text("lastActivity")}`}`;
    case "budget_alert":
      return `${dollars(Number(event.costUsd ?? 0))} ${event.budgetUsd ? `of ${dollars(Number(event.budgetUsd))} used` : "spent"}`;
    case "task_milestone":
      return `${text("status")}${text("progress") && ` ${text("progress")}`}: ${text("task")}`;
    case "build_result":
      return `${text("command")}: ${event.passed === true ? "passed" : "failed"}${text("summary") && `, ${text("summary")}`}`;
    case "context_pressure":
      return `${text("percent")} % of its context used`;
    case "subagent_spawn":
      return `started ${text("count")} sub-agents of its own`;
    case "failure_loop":
      return `${text("consecutiveFailures")} failures in a row: ${text("lastTool")} ${text("lastError")}`;
    default:
      return text("message") || text("text") || String(event.event ?? event.type ?? "");
  }
}
