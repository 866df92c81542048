import { expect, test } from "vitest";
import { fieldsOf, valueOf } from "./spec-schema";

const document = {
  components: {
    schemas: {
      Backoff: { type: "string", enum: ["fixed", "linear"] },
      Budget: { type: "object" },
      RunSpec: {
        properties: {
          task: { type: "string", description: "What to do" },
          retryCount: { type: "integer", minimum: 0, maximum: 100, default: 0 },
          retryBackoff: { $ref: "#/components/schemas/Backoff", default: "fixed" },
          tags: { anyOf: [{ type: "string" }, { type: "array" }], default: [] },
          budget: { anyOf: [{ $ref: "#/components/schemas/Budget" }, { type: "null" }], default: null },
        },
      },
    },
  },
};

test("each parameter becomes a field of its kind, with its bounds and words", () => {
  const fields = fieldsOf(document);
  expect(fields.map((each) => each.kind)).toEqual(["text", "number", "choice", "list", "json"]);
  expect(fields[1]).toMatchObject({ least: 0, most: 100, default: 0 });
});

test("an empty field is no parameter, a duration stays a text", () => {
  const [task, retries, , tags] = fieldsOf(document);
  expect(valueOf(task!, " ")).toBeUndefined();
  expect([valueOf(retries!, "5m"), valueOf(retries!, "3"), valueOf(tags!, "a, b,")]).toEqual(["5m", 3, ["a", "b"]]);
});
