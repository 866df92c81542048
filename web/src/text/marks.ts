// What a worker said, cut into pieces that are safe to show.
//
// Characters that move other characters, or that nobody sees, are shown as marks: a name that ends
// in ".exe" must not read as one that ends in ".png". Only http(s) addresses become links. The
// pieces become text nodes; nothing here, or behind it, makes markup of what a worker said.

export type Piece = { kind: "text" | "mark" | "link"; text: string; from: number };

// Control characters without newline and tab, direction marks, what has no width, lone surrogates.
// The joiners U+200C and U+200D stay: scripts and emoji need them, and they move nothing.
const HIDDEN =
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f" +
  "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]|[\\u{e0000}-\\u{e007f}]|\\p{Surrogate}";
const LINK = "https?://[^\\s<>\"'`\\\\^{|}\\p{C}]+";
const PIECE = new RegExp(`(?<link>${LINK})|(?<mark>${HIDDEN})`, "gu");
// Punctuation after an address belongs to the sentence around it.
const TRAILING = /[.,;:!?)\]]+$/;

/** Who a session is, in a word, as commands say it; what is no session of ours stays as it is. */
export const person = (key: string) =>
  key.replace(/^agent:main:([^:]+)$/, "$1").replace(/^agent:([^:]+):subagent:.*/, "a run of $1");

/** The pieces of `text`, in order; joined again they are `text` but for the words of marks. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(PIECE)) {
    const mark = match.groups?.["mark"];
    const whole = mark === undefined ? match[0].replace(TRAILING, "") : match[0];
    if (match.index > from) found.push({ kind: "text", text: text.slice(from, match.index), from });
    found.push({ kind: mark === undefined ? "link" : "mark", text: mark === undefined ? whole : codePoint(mark), from: match.index });
    from = match.index + whole.length;
  }
  if (from < text.length) found.push({ kind: "text", text: text.slice(from), from });
  return found;
}

/** `text` for places that take only text, such as a title or a label, with marks in brackets. */
export function plain(text: string): string {
  return pieces(text)
    .map((each) => (each.kind === "mark" ? `[${each.text}]` : each.text))
    .join("");
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
