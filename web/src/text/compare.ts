// What differs between two documents, field by field, and between two texts, line by line.

export type Field = { name: string; a: string; b: string };
export type DiffLine = { sign: " " | "+" | "-"; text: string };

/** What is not there, which is something else than an empty text. */
export const NONE = "–";
/** So many pairs of lines are compared: more would keep somebody waiting. */
const PAIRS_MAX = 1_000_000;

/** The fields of both, those within others as `budget.maxTokens`; a list is one value. */
export function fieldsOf(a: unknown, b: unknown): Field[] {
  const [left, right] = [flat(a), flat(b)];
  const names = new Set([...left.keys(), ...right.keys()]);
  return [...names].map((name) => ({ name, a: left.get(name) ?? NONE, b: right.get(name) ?? NONE }));
}

function flat(value: unknown, path = "", found = new Map<string, string>()): Map<string, string> {
  if (value === null || value === undefined) return found;
  if (typeof value !== "object" || Array.isArray(value)) return found.set(path, typeof value === "string" ? value : JSON.stringify(value));
  for (const [name, each] of Object.entries(value)) flat(each, path === "" ? name : `${path}.${name}`, found);
  return found;
}

/** The lines of both, those that only one has with its sign; null = too many differ. */
export function diffOf(a: string, b: string): DiffLine[] | null {
  const [left, right] = [a.split("\n"), b.split("\n")];
  const least = Math.min(left.length, right.length);
  let [head, tail] = [0, 0];
  while (head < least && left[head] === right[head]) head += 1;
  while (tail < least - head && left.at(-1 - tail) === right.at(-1 - tail)) tail += 1;
  const [x, y] = [left.slice(head, left.length - tail), right.slice(head, right.length - tail)];
  if (x.length * y.length > PAIRS_MAX) return null;
  // How many lines both have in common behind each pair of places.
  const width = y.length + 1;
  const common = new Uint32Array((x.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = x.length - 1; i >= 0; i -= 1) {
    for (let j = y.length - 1; j >= 0; j -= 1) common[i * width + j] = x[i] === y[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const found: DiffLine[] = left.slice(0, head).map((text) => ({ sign: " ", text }));
  for (let [i, j] = [0, 0]; i < x.length || j < y.length; ) {
    if (i < x.length && x[i] === y[j]) [i, j] = (found.push({ sign: " ", text: x[i] ?? "" }), [i + 1, j + 1]);
    else if (j === y.length || (i < x.length && at(i + 1, j) >= at(i, j + 1))) found.push({ sign: "-", text: x[i++] ?? "" });
    else found.push({ sign: "+", text: y[j++] ?? "" });
  }
  return [...found, ...left.slice(left.length - tail).map((text): DiffLine => ({ sign: " ", text }))];
}
