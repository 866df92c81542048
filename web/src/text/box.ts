// What stands in the one box: words to find something by or, behind `>`, a task to start.

export const STARTS = ">";

/** The task; null = something is looked for. */
export function taskIn(words: string): string | null {
  const text = words.trimStart();
  return text.startsWith(STARTS) ? text.slice(STARTS.length).trim() : null;
}

type Ranked = { id: string; score: number };

/** The best first; among equals, that of the last run. */
export function proposed<T extends Ranked>(agents: readonly T[], last: string | null): readonly T[] {
  const [best] = agents;
  const again = agents.find((each) => each.id === last && each.score === best?.score);
  return again === undefined ? agents : [again, ...agents.filter((each) => each !== again)];
}

/** Those whose name has the words, at most so many. */
export function namedLike<T>(all: readonly T[], nameOf: (each: T) => string, words: string, most: number): readonly T[] {
  return all.filter((each) => nameOf(each).toLowerCase().includes(words.toLowerCase())).slice(0, most);
}
