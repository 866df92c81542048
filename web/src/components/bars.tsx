// Bars along time. Lengths are attributes in per cent; kinds differ by pattern, not only by colour.
import type { ReactNode } from "react";
import { Fragment } from "react";
import { clockSeconds, span } from "../text/times";
import type { Kind, Segment } from "../text/segments";

export type Lane = { key: string; label: ReactNode; segments: readonly Segment[]; note: ReactNode };

const NAMES: Record<Kind, string> = {
  work: "at work",
  wait: "waits",
  person: "waits for a person",
  check: "is checked",
  ok: "ended ok",
  bad: "failed",
};
const LEAST_PERCENT = 0.15;
const LEAST_IN_CELL = 0.6;

/** Patterns of bars; drawn once, and not hidden by `display: none`, or they would not paint. */
export function Patterns() {
  return (
    <svg className="patterns" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="6" height="6" className="hatch-ground" />
          <path d="M0 0v6" strokeWidth="2.4" className="hatch-idle" />
        </pattern>
        <pattern id="hatch-you" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="6" height="6" className="hatch-ground" />
          <path d="M0 0v6" strokeWidth="2.4" className="hatch-person" />
        </pattern>
        <pattern id="stripes" width="5" height="5" patternUnits="userSpaceOnUse">
          <rect width="5" height="5" className="hatch-ground" />
          <path d="M1.5 0v5" strokeWidth="3" className="hatch-bad" />
        </pattern>
        <pattern id="dots" width="6" height="6" patternUnits="userSpaceOnUse">
          <rect width="6" height="6" className="hatch-ground" />
          <circle cx="3" cy="3" r="1.8" className="hatch-check" />
        </pattern>
      </defs>
    </svg>
  );
}

export function Bars({ lanes, from, to, label }: { lanes: readonly Lane[]; from: number; to: number; label: string }) {
  const length = Math.max(to - from, 1);
  const place = (at: number) => (Math.min(Math.max(at - from, 0), length) / length) * 100;
  return (
    <div className="bars" role="group" aria-label={label}>
      <div className="barline axis" aria-hidden="true">
        <span>{clockSeconds(from)}</span>
        <svg width="100%" height="18">
          {[0, 25, 50, 75].map((each) => (
            <text key={each} x={`${each}%`} y="13">
              {each === 0 ? "0" : span((length * each) / 100)}
            </text>
          ))}
        </svg>
        <span className="num">{span(length)}</span>
      </div>
      <ul>
        {lanes.map((lane) => (
          <li key={lane.key} className="barline">
            <span className="barlabel">{lane.label}</span>
            <svg width="100%" height="14" role="img" aria-label={wordsOf(lane.segments)}>
              {[25, 50, 75].map((each) => (
                <line key={each} x1={`${each}%`} x2={`${each}%`} y1="0" y2="14" className="grid" />
              ))}
              {lane.segments.map((each, at) => (
                <rect
                  key={at}
                  className={`seg ${each.kind}`}
                  x={`${place(each.from)}%`}
                  width={`${Math.max(place(each.to) - place(each.from), LEAST_PERCENT)}%`}
                  y="1"
                  height="12"
                  rx="2"
                >
                  <title>{`${NAMES[each.kind]} ${span(each.to - each.from)}`}</title>
                </rect>
              ))}
            </svg>
            <span className="num note">{lane.note}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A bar in a cell of a table, from one part of its width to another. */
export function BarCell({ from, to, kind }: { from: number; to: number; kind: Kind }) {
  return (
    <svg className="barcell" width="100%" height="14" aria-hidden="true">
      <rect className={`seg ${kind}`} x={`${Math.min(from * 100, 100 - LEAST_IN_CELL)}%`} width={`${Math.max((to - from) * 100, LEAST_IN_CELL)}%`} y="1" height="12" rx="2" />
    </svg>
  );
}

export function Legend({ kinds }: { kinds: readonly Kind[] }) {
  return (
    <p className="legend">
      {kinds.map((kind) => (
        <Fragment key={kind}>
          <svg width="22" height="12" aria-hidden="true">
            <rect className={`seg ${kind}`} width="22" height="12" rx="2" />
          </svg>
          <span>{NAMES[kind]}</span>
        </Fragment>
      ))}
    </p>
  );
}

function wordsOf(segments: readonly Segment[]): string {
  return segments.map((each) => `${NAMES[each.kind]} ${span(each.to - each.from)}`).join(", ") || "nothing yet";
}
