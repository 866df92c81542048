import { expect, test } from "vitest";
import { asked } from "./filter";

test("named words become parameters, the rest is text", () => {
  expect(asked('outcome:error outcome:lost agent:codex "two words" http://x')).toEqual({
    outcome: "error,lost",
    agentId: "codex",
    q: "two words http://x",
  });
});

test("a state is asked for as the page shows it", () => {
  expect(asked('state:"needs you" state:failed')).toEqual({ state: "needs_you,failed" });
});

test("an empty filter asks for everything", () => {
  expect(asked("  ")).toEqual({});
});
