// Dollars by day as bars, with the number of attempts below that nobody told the cost of.
import { counted, dollars } from "../text/amounts";

type Day = { at: string; usd: number | null; unknown: number };

const HEIGHT = 180;
const TOP = 14;
const GROUND = 156;
/** So many days have their number below them, at most. */
const LABELS_MAX = 15;

export function DayBars({ days }: { days: readonly Day[] }) {
  const most = Math.max(0.01, ...days.map((each) => each.usd ?? 0));
  const unknown = days.filter((each) => each.unknown > 0);
  const every = Math.ceil(days.length / LABELS_MAX);
  const wide = 100 / days.length;
  const at = (part: number) => GROUND - part * (GROUND - TOP);
  return (
    <div className="body">
      <div className="daybars" role="img" aria-label={wordsOf(days)}>
        <svg width="100%" height={HEIGHT}>
          {[0, 0.5, 1].map((part) => (
            <text key={part} x="100%" y={at(part) + 4} textAnchor="end">
              {dollars(most * part)}
            </text>
          ))}
        </svg>
        <svg width="100%" height={HEIGHT}>
          {[0, 0.5, 1].map((part) => (
            <line key={part} x1="0" x2="100%" y1={at(part)} y2={at(part)} className="grid" />
          ))}
          {days.map(({ at: day, usd }, place) => (
            <g key={day}>
              <rect className="seg work" x={`${(place + 0.2) * wide}%`} width={`${wide * 0.6}%`} y={at((usd ?? 0) / most)} height={GROUND - at((usd ?? 0) / most)} />
              {(days.length - 1 - place) % every === 0 && (
                <text x={`${(place + 0.5) * wide}%`} y={HEIGHT - 6} textAnchor="middle">
                  {dayOf(day)}
                </text>
              )}
            </g>
          ))}
        </svg>
      </div>
      {unknown.length > 0 && (
        <p className="note">
          Not reported: {unknown.map((each) => `${dayOf(each.at)}: ${each.unknown}`).join(", ")}. The bars of these days are too low by an
          unknown amount.
        </p>
      )}
    </div>
  );
}

function dayOf(at: string): string {
  return at.slice(8, 10).replace(/^0/, "");
}

function wordsOf(days: readonly Day[]): string {
  const known = days.filter((each) => each.usd !== null);
  const most = [...known].sort((a, b) => (b.usd ?? 0) - (a.usd ?? 0))[0];
  if (most === undefined) return `no cost was reported in ${counted(days.length, "day")}`;
  return `dollars by day over ${counted(days.length, "day")}; most on ${most.at.slice(0, 10)}: ${dollars(most.usd ?? 0)}`;
}
