import { expect, test } from "vitest";
import { word } from "./shell";

test("a plain path stays, anything else is quoted", () => {
  expect(word("/home/ada/shop-2")).toBe("/home/ada/shop-2");
  expect(word("/tmp/a; rm -rf ~")).toBe("'/tmp/a; rm -rf ~'");
  expect(word("it's")).toBe(`'it'\\''s'`);
});
