import { boundsOf, fromField, RANGES, toField } from "../text/time-range";
import { Choice } from "./form";

/** When runs were spawned: some time back from now, or from one time to another. */
export function TimeRange({ range, onRange }: { range: string; onRange: (range: string) => void }) {
  const isAbsolute = !(range in RANGES);
  const { since = "", until = "" } = boundsOf(range, new Date());
  const field = (name: string, value: string, put: (time: string) => string) => (
    <input type="datetime-local" aria-label={name} title={name} value={toField(value)} onChange={(event) => onRange(put(fromField(event.target.value)))} />
  );
  return (
    <>
      <Choice
        name="spawned"
        value={isAbsolute ? "/" : range}
        options={Object.entries({ ...RANGES, "/": "from … to …" })}
        onChoose={(next) => onRange(next === "/" ? `${boundsOf("today", new Date()).since}/` : next)}
      />
      {isAbsolute && field("spawned since", since, (time) => `${time}/${until}`)}
      {isAbsolute && field("spawned before", until, (time) => `${since}/${time}`)}
    </>
  );
}
