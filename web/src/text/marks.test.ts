import { expect, test } from "vitest";
import { person, pieces, plain } from "./marks";

test("a direction mark is shown by its number instead of turning the text around", () => {
  expect(pieces("rtl-\u202egnp.exe")).toMatchObject([
    { kind: "text", text: "rtl-" },
    { kind: "mark", text: "U+202E" },
    { kind: "text", text: "gnp.exe" },
  ]);
});

test("NUL, a lone surrogate and a tag character are marks, an emoji and a newline are not", () => {
  expect(plain("a\0b\ud800c\u{e0041}")).toBe("a[U+0000]b[U+D800]c[U+E0041]");
  expect(plain("👩‍💻\n\tok")).toBe("👩‍💻\n\tok");
});

test("only http addresses are links, and punctuation behind one is not part of it", () => {
  expect(pieces("see https://example.org/a?b=1). javascript:alert(1)")).toMatchObject([
    { kind: "text", text: "see " },
    { kind: "link", text: "https://example.org/a?b=1" },
    { kind: "text", text: "). javascript:alert(1)" },
  ]);
});

test("a direction mark ends an address, so that it cannot hide in one", () => {
  expect(pieces("http://a.example/\u202egnp")[1]).toMatchObject({ kind: "mark", text: "U+202E" });
});

test("a session is called as commands call it, and what is none stays as it is", () => {
  const keys = ["agent:main:billing", "agent:codex:subagent:r-1", "agent:main:subagent:r-1", "mcp:claude:7"];
  expect(keys.map(person)).toEqual(["billing", "a run of codex", "a run of main", "mcp:claude:7"]);
});
