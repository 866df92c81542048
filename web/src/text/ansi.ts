// Terminal colours as classes: `\x1b[31m` becomes `ansi-red`, every other sequence is dropped.

/** Part of a text, from that place in it on. */
export type Span = { text: string; from: number; classes: string };

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const ESCAPE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])?/g;

type Style = { color: string; bold: boolean; faint: boolean; italic: boolean; underline: boolean };
const PLAIN: Style = { color: "", bold: false, faint: false, italic: false, underline: false };

/** The text between escape sequences, each piece with the classes that hold for it. */
export function spans(text: string): Span[] {
  if (!text.includes("\x1b")) return [{ text, from: 0, classes: "" }];
  const found: Span[] = [];
  let style = PLAIN;
  let from = 0;
  const take = (until: number) => {
    if (until > from) found.push({ text: text.slice(from, until), from, classes: classesOf(style) });
  };
  for (const match of text.matchAll(ESCAPE)) {
    take(match.index);
    from = match.index + match[0].length;
    if (match[2] === "m") style = styled(style, match[1] ?? "");
  }
  take(text.length);
  return found;
}

function styled(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((each) => (each === "" ? 0 : Number(each)));
  let style = before;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 38 || code === 48) {
      // A colour by number or by its parts: its parameters must not be read as codes of their own.
      at += codes[at + 1] === 5 ? 2 : 4;
      continue;
    }
    style = withCode(style, code);
  }
  return style;
}

function withCode(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, faint: true };
  if (code === 3) return { ...style, italic: true };
  if (code === 4) return { ...style, underline: true };
  if (code === 22) return { ...style, bold: false, faint: false };
  if (code === 23) return { ...style, italic: false };
  if (code === 24) return { ...style, underline: false };
  if (code === 39) return { ...style, color: "" };
  const color = code >= 90 && code <= 97 ? code - 90 : code >= 30 && code <= 37 ? code - 30 : undefined;
  return color === undefined ? style : { ...style, color: COLORS[color] ?? "" };
}

function classesOf(style: Style): string {
  return [
    style.color && `ansi-${style.color}`,
    style.bold && "ansi-bold",
    style.faint && "ansi-faint",
    style.italic && "ansi-italic",
    style.underline && "ansi-underline",
  ]
    .filter(Boolean)
    .join(" ");
}
