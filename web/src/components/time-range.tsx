import { boundsOf, fromField, RANGES, toField } from "../text/time-range";

/** When runs were spawned: some time back from now, or from one time to another. */
export function TimeRange({ range, onRange }: { range: string; onRange: (range: string) => void }) {
  const isAbsolute = !(range in RANGES);
  const { since = "", until = "" } = boundsOf(range, new Date());
  const field = (name: string, value: string, put: (time: string) => string) => (
    <input type="datetime-local" aria-label={name} title={name} value={toField(value)} onChange={(event) => onRange(put(fromField(event.target.value)))} />
  );
  return (
    <>
      <select
        aria-label="spawned"
        value={isAbsolute ? "/" : range}
        onChange={(event) => onRange(event.target.value === "/" ? `${boundsOf("today", new Date()).since}/` : event.target.value)}
      >
        {Object.entries({ ...RANGES, "/": "from … to …" }).map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      {isAbsolute && field("spawned since", since, (time) => `${time}/${until}`)}
      {isAbsolute && field("spawned before", until, (time) => `${since}/${time}`)}
    </>
  );
}
