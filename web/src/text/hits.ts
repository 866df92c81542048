// Where a search matched in a text, for the eye.

/** From and to. */
export type Hit = readonly [number, number];
export type Part = { text: string; isHit: boolean };

/** Places that are counted in characters, counted as JavaScript does: some characters are two units. */
export function inUnits(text: string, hits: readonly (readonly number[])[]): Hit[] {
  const pairs = hits.map(([from = 0, to = 0]): Hit => [from, to]);
  if (pairs.length === 0 || !/[\ud800-\udbff]/.test(text)) return pairs;
  const units = [0];
  for (const character of text) units.push((units.at(-1) ?? 0) + character.length);
  const unit = (at: number) => units[at] ?? text.length;
  return pairs.map(([from, to]): Hit => [unit(from), unit(to)]);
}

/** `text`, which begins at `from` of a longer one, cut where hits of that begin and end. */
export function parts(text: string, from: number, hits: readonly Hit[]): Part[] {
  const found: Part[] = [];
  let at = 0;
  const take = (until: number, isHit: boolean) => {
    if (until > at) found.push({ text: text.slice(at, until), isHit });
    at = Math.max(at, until);
  };
  for (const [begin, end] of hits) {
    if (end <= from + at || begin >= from + text.length) continue;
    take(begin - from, false);
    take(Math.min(end - from, text.length), true);
  }
  take(text.length, false);
  return found;
}
