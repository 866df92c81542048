// The shapes of states, 14 px. A state is told by shape and word; the colour only helps.
import type { ReactNode } from "react";
import type { Shape } from "../text/states";

const disc = <circle cx="7" cy="7" r="6" fill="currentColor" />;
const ring = <circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" strokeWidth="1.5" />;
const dashedRing = (
  <circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" strokeWidth="1.5" strokeDasharray="2.1 1.98" />
);
const octagon = <path d="M4.4 1h5.2L13 4.4v5.2L9.6 13H4.4L1 9.6V4.4z" fill="currentColor" />;
const line = { fill: "none", stroke: "currentColor", strokeWidth: 1.6, strokeLinecap: "round" } as const;
const cut = { ...line, stroke: "var(--surface)" } as const;

const SHAPES: Record<Shape, readonly [ReactNode, ReactNode?]> = {
  bubble: [<path d="M2 1.5h10a1 1 0 0 1 1 1v6.5a1 1 0 0 1-1 1H7l-3 3v-3H2a1 1 0 0 1-1-1V2.5a1 1 0 0 1 1-1z" fill="currentColor" />, <path d="M4.2 5.8h.01M7 5.8h.01M9.8 5.8h.01" {...cut} />],
  diamond: [<path d="M7 .6 13.4 7 7 13.4.6 7z" fill="currentColor" />, <path d="M7 4v3.2M7 9.8h.01" {...cut} />],
  ring: [ring, <path d="M7 7V3.6A3.4 3.4 0 1 1 3.6 7z" fill="currentColor" />],
  dashedTick: [dashedRing, <path d="m4.6 7.2 1.7 1.7 3.1-3.5" {...line} />],
  lines: [<path d="M2 3.5h10M2 7h10M2 10.5h6" {...line} />],
  dashed: [dashedRing],
  turning: [<path d="M11.5 7A4.5 4.5 0 1 1 9.8 3.5M10 1v2.8H7.2" {...line} />],
  bars: [<path d="M4.5 2.5v9M9.5 2.5v9" {...line} strokeWidth="2.4" />],
  tick: [disc, <path d="m4.2 7.2 2 2 3.6-4.2" {...cut} />],
  wave: [ring, <path d="M4 7.6c1-1.8 2-1.8 3 0s2 1.2 3-.8" {...line} />],
  half: [ring, <path d="M7 1.8a5.2 5.2 0 0 1 0 10.4z" fill="currentColor" />],
  cross: [octagon, <path d="m5 5 4 4m0-4L5 9" {...cut} />],
  hands: [octagon, <path d="M7 4v3.2l2 1.3" {...cut} />],
  triangle: [<path d="M7 1 13.4 12.5H.6z" fill="currentColor" />, <path d="M7 5.2v3M7 10.5h.01" {...cut} />],
  slash: [ring, <path d="m3.4 10.6 7.2-7.2" {...line} />],
};

export function ShapeMark({ shape }: { shape: Shape }) {
  const [under, over] = SHAPES[shape];
  return (
    <svg className="shape" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true" focusable="false">
      {under}
      {over}
    </svg>
  );
}
