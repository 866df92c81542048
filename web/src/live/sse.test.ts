import { expect, test } from "vitest";
import { FrameReader } from "./sse";

test("a frame that comes in two pieces is one frame", () => {
  const reader = new FrameReader();
  expect(reader.take("id: 7\nevent: run\nda")).toEqual([]);
  expect(reader.take('ta: {"a":1}\n\n: still here\nid: 8\n\n')).toEqual([
    { id: "7", event: "run", data: '{"a":1}' },
    { id: "8", event: "message", data: "" },
  ]);
});
