// The spawn parameters as fields of a form, from the daemon's own OpenAPI document.

export type Field = {
  name: string;
  words: string;
  kind: "text" | "number" | "flag" | "choice" | "list" | "json";
  choices: string[];
  least: number | null;
  most: number | null;
  default: unknown;
  /** Where forms and help list it: `Retry`, `Limits`, … */
  section: string;
};

type Schema = Record<string, unknown>;

/** The fields of `RunSpec`, in the order of the document. */
export function fieldsOf(document: Record<string, unknown>): Field[] {
  const schemas = (document["components"] as { schemas: Record<string, Schema> }).schemas;
  const properties = (schemas["RunSpec"]?.["properties"] ?? {}) as Record<string, Schema>;
  return Object.entries(properties).map(([name, schema]) => fieldOf(name, schema, schemas));
}

function fieldOf(name: string, schema: Schema, schemas: Record<string, Schema>): Field {
  const variants = ((schema["anyOf"] as Schema[] | undefined) ?? [schema])
    .map((each) => resolved(each, schemas))
    .filter((each) => each["type"] !== "null");
  const choices = variants.flatMap((each) => (each["enum"] as string[] | undefined) ?? []);
  const types = new Set(variants.map((each) => each["type"]));
  const number = (key: string) => {
    const found = schema[key] ?? variants.find((each) => key in each)?.[key];
    return typeof found === "number" ? found : null;
  };
  return {
    name,
    words: String(schema["description"] ?? ""),
    kind:
      choices.length > 0
        ? "choice"
        : types.has("array")
          ? "list"
          : types.has("boolean")
            ? "flag"
            : types.has("integer") || types.has("number")
              ? "number"
              : types.has("string")
                ? "text"
                : "json",
    choices,
    least: number("minimum"),
    most: number("maximum"),
    default: schema["default"] ?? null,
    section: String(schema["x-section"] ?? ""),
  };
}

function resolved(schema: Schema, schemas: Record<string, Schema>): Schema {
  const name = (schema["$ref"] as string | undefined)?.split("/").at(-1);
  return name === undefined ? schema : (schemas[name] ?? {});
}

/** What stands in a field, as a value of the parameter; undefined = nothing, so the default holds.
 *
 * @throws SyntaxError JSON that is none.
 */
export function valueOf(field: Field, text: string): unknown {
  if (text.trim() === "") return undefined;
  switch (field.kind) {
    case "number":
      // A text such as `5m` stands for a number of seconds; the daemon reads it.
      return Number.isNaN(Number(text)) ? text.trim() : Number(text);
    case "flag":
      return text === "true";
    case "list":
      return text.split(",").map((each) => each.trim()).filter((each) => each !== "");
    case "json":
      return JSON.parse(text) as unknown;
    default:
      return text;
  }
}

/** A stored value as the text of its field. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value, null, 2) : String(value);
}
