// Points in time and lengths, in words that keep up.
import { useWords } from "../live/clock";
import { preferences } from "../live/preferences";
import { useStorePart } from "../live/store";
import { absolute, ago, ahead, clock, ms, span } from "../text/times";

type At = string | null | undefined;

/** `4 min ago`, or the absolute time for who prefers it. */
export function Ago({ at, none = "–" }: { at: At; none?: string }) {
  const isAbsolute = useStorePart(preferences, (all) => all.absoluteTimes);
  return <Time at={at} none={none} words={isAbsolute ? clock : ago} />;
}

/** `13:16, in 20 min`. */
export function Ahead({ at }: { at: At }) {
  return <Time at={at} words={ahead} />;
}

/** `13:16`. */
export function Clock({ at }: { at: At }) {
  return <Time at={at} words={clock} />;
}

/** A point in time in words, absolute in the title. */
function Time({ at, none, words }: { at: At; none?: string; words: (time: number, now: number) => string }) {
  const time = ms(at);
  const shown = useWords((now) => (time === null ? "" : words(time, now)));
  if (time === null) return none === undefined ? null : <span>{none}</span>;
  return (
    <time dateTime={at ?? ""} title={absolute(time)}>
      {shown}
    </time>
  );
}

/** From one time to another, or until now. */
export function Took({ from, to }: { from: At; to: At }) {
  const begin = ms(from);
  const end = ms(to);
  const words = useWords((now) => (begin === null ? "–" : span((end ?? now) - begin)));
  return <span>{words}</span>;
}
