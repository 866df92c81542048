// Points in time and lengths, in words that keep up.
import { useWords } from "../live/clock";
import { preferences } from "../live/preferences";
import { useStorePart } from "../live/store";
import { absolute, ago, ahead, clock, ms, span } from "../text/times";

type At = string | null | undefined;

/** `4 min ago`, or the absolute time for who prefers it. */
export function Ago({ at, none = "–" }: { at: At; none?: string }) {
  const time = ms(at);
  const isAbsolute = useStorePart(preferences, (all) => all.absoluteTimes);
  const words = useWords((now) => (time === null ? none : isAbsolute ? clock(time, now) : ago(time, now)));
  if (time === null) return <span>{none}</span>;
  return (
    <time dateTime={at ?? ""} title={absolute(time)}>
      {words}
    </time>
  );
}

/** `13:16, in 20 min`. */
export function Ahead({ at }: { at: At }) {
  const time = ms(at);
  const words = useWords((now) => (time === null ? "" : ahead(time, now)));
  if (time === null) return null;
  return (
    <time dateTime={at ?? ""} title={absolute(time)}>
      {words}
    </time>
  );
}

/** `13:16`, absolute in the title. */
export function Clock({ at }: { at: At }) {
  const time = ms(at);
  if (time === null) return null;
  return (
    <time dateTime={at ?? ""} title={absolute(time)}>
      {clock(time)}
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
