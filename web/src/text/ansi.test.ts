import { expect, test } from "vitest";
import { spans } from "./ansi";

test("colours become classes and end with their reset", () => {
  expect(spans("\x1b[1;31mFAIL\x1b[0m rest")).toMatchObject([
    { text: "FAIL", classes: "ansi-red ansi-bold" },
    { text: " rest", classes: "" },
  ]);
});

test("the parts of a colour by number are not read as codes of their own", () => {
  expect(spans("\x1b[38;5;1mx\x1b[38;2;1;2;3my")).toMatchObject([
    { text: "x", classes: "" },
    { text: "y", classes: "" },
  ]);
});

test("titles, cursor moves and a cut sequence leave nothing behind", () => {
  const text = spans("a\x1b]0;title\x07b\x1b[2Kc\x1b").map((each) => each.text).join("");
  expect(text).toBe("abc");
});
