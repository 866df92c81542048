import { expect, test } from "vitest";
import { drafted, formOf, type Form } from "./new-run";
import type { Field } from "./spec-schema";

const field = (name: string, kind: Field["kind"] = "text"): Field => ({ name, words: "", kind, choices: [], least: null, most: null, default: null, section: "" });
const FIELDS = [field("task"), field("cwd"), field("verification", "json"), field("budget", "json")];

const STORED = {
  task: "fix it",
  cwd: "/work",
  verification: {
    artifacts: [{ path: "out.txt" }, { path: "log", regex: "ok" }, { path: "junit.xml", junit: true }, { path: "big", minBytes: 9 }],
    commands: ["make test"],
    onFailure: "retry_once",
  },
  budget: { maxCostUsd: 2, maxSeconds: 600, maxRuns: 3 },
};

test("stored parameters come back from the form as they went into it", () => {
  const form = formOf(STORED);
  expect(form.checks.map((each) => each.kind)).toEqual(["file", "regex", "junit", "command"]);
  expect([form.texts["maxCostUsd"], form.texts["minutes"]]).toEqual(["2", "10"]);
  expect(JSON.parse(form.texts["verification"] ?? "")).toEqual({ artifacts: [{ path: "big", minBytes: 9 }], onFailure: "retry_once" });
  expect(drafted(FIELDS, form)).toEqual({ spec: STORED });
});

test.each([
  [{ texts: {}, checks: [] }, "Say what to do."],
  [{ texts: { task: "t" }, checks: [] }, "Say in which directory."],
  [{ texts: { task: "t", cwd: "/", minutes: "soon" }, checks: [] }, "Minutes: a number above 0, not “soon”."],
  [{ texts: { task: "t", cwd: "/", maxCostUsd: "0" }, checks: [] }, "Dollars: a number above 0, not “0”."],
  [{ texts: { task: "t", cwd: "/", budget: "{" }, checks: [] }, "budget must be JSON"],
] satisfies [Form, string][])("what is missing is said: %#", (form, error) => {
  expect(drafted(FIELDS, form)).toEqual({ error });
});

test("a row that is not filled in asks for nothing", () => {
  const form: Form = { texts: { task: "t", cwd: "/" }, checks: [{ kind: "command", text: " ", pattern: "" }] };
  expect(drafted(FIELDS, form)).toEqual({ spec: { task: "t", cwd: "/" } });
});
