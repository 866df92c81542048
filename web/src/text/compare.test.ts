import { expect, test } from "vitest";
import { diffOf, fieldsOf } from "./compare";

const shown = (a: string, b: string) => diffOf(a, b)?.map(({ sign, text }) => sign + text);

test("fields are compared by their path, and one that is missing is no empty text", () => {
  expect(fieldsOf({ task: "a", budget: { maxTokens: 5 }, tags: ["x"] }, { task: "", budget: { maxTokens: 6 }, model: "m", tags: ["x"] })).toEqual([
    { name: "task", a: "a", b: "" },
    { name: "budget.maxTokens", a: "5", b: "6" },
    { name: "tags", a: '["x"]', b: '["x"]' },
    { name: "model", a: "–", b: "m" },
  ]);
});

test("lines that both have stay, in their order, and others have the sign of whose they are", () => {
  expect(shown("a\nb\nc\nd", "a\nx\nc\nd\ne")).toEqual([" a", "-b", "+x", " c", " d", "+e"]);
  expect(shown("", "")).toEqual([" "]);
  expect(shown("a\na", "a")).toEqual([" a", "-a"]);
});

test("two long texts with nothing in common are not compared", () => {
  const lines = (sign: string) => Array.from({ length: 1_500 }, (_, at) => sign + at).join("\n");
  expect(diffOf(lines("a"), lines("b"))).toBeNull();
  expect(diffOf(lines("a"), lines("a"))).toHaveLength(1_500);
});
