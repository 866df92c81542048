// Runs as boxes in layers, with lines for what waits for what. Boxes are links; drawn as SVG.
import { useEffect, useMemo, useRef, useState, type RefObject } from "react";
import { useLocation } from "wouter";
import type { Graph } from "../api/types";
import { useLayout } from "../live/layout";
import { counted } from "../text/amounts";
import { BOX_HEIGHT, BOX_WIDTH, curve, foldedGraph, linkId, type Box, type Link, type Placement, type Point } from "../text/graph";
import { plain } from "../text/marks";
import { named, stateOf } from "../text/states";
import { runAt } from "./routes";
import { ShapeMark } from "./shape";
import { WordChip } from "./chip";
import { Empty, Skeleton } from "./states";

const LABEL_CHARS = 20;
const WHY_CHARS = 26;
/** Of more boxes only those are drawn that are in sight, or nearly. */
const DRAWN_WHOLE = 200;
const NEAR_PX = 600;
const BASE = import.meta.env.BASE_URL.replace(/\/$/, "");

export function RunGraph({ graph, folds }: { graph: Graph; folds: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const { boxes, links } = useMemo(() => foldedGraph(graph.nodes, graph.edges, folds, unfolded), [graph, folds, unfolded]);
  const layout = useLayout({ boxes: boxes.map((each) => each.id), links: links.map(({ source, target }) => ({ source, target })) });
  const groups = boxes.filter((each) => each.nodes.length > 1);
  const hidden = groups.reduce((sum, each) => sum + each.nodes.length, 0);
  const unfold = (id: string) => setUnfolded(new Set(unfolded).add(id));
  return (
    <>
      <div ref={place} className="box graph" tabIndex={0} role="group" aria-label="graph of runs" aria-busy={layout === null}>
        {layout === "failed" ? (
          <Empty title="This graph could not be drawn; the table has all of it" />
        ) : layout === null ? (
          <Skeleton />
        ) : (
          <Drawing place={place} layout={layout} boxes={boxes} links={links} onUnfold={unfold} />
        )}
      </div>
      <p className="note">
        {counted(graph.runs, "run")}, {counted(graph.edges.length, "edge")}
        {groups.length > 0 && `; ${hidden} of them folded into ${counted(groups.length, "group")}`}. Failures and questions are never folded away.
      </p>
      {groups.length > 0 && (
        <ul className="box lines groups">
          {groups.map((group) => (
            <li key={group.id} className="cause">
              <WordChip word={group.word} text={`${group.nodes.length} ${group.word}`} />
              <span className="note">
                {group.nodes.slice(0, 8).map((each) => plain(each.label)).join(", ")}
                {group.nodes.length > 8 && " …"}
              </span>
              <button type="button" className="plain" onClick={() => unfold(group.id)}>unfold</button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

type DrawingProps = {
  place: RefObject<HTMLDivElement | null>;
  layout: Placement;
  boxes: readonly Box[];
  links: readonly Link[];
  onUnfold: (id: string) => void;
};

/** What is new comes with the next layout; until then all else stands where it stood. */
function Drawing({ place, layout: { width, height, corners, ways }, boxes, links, onUnfold }: DrawingProps) {
  const isSeen = useSight(place, boxes.length > DRAWN_WHOLE);
  return (
    <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      <defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto-start-reverse">
          <path d="M0 .5 8 4 0 7.5z" className="arrow" />
        </marker>
      </defs>
      {links.map((link) => {
        const id = linkId(link);
        const way = ways.get(id);
        if (way === undefined || !isSeen(way)) return null;
        return <path key={id} className={`edge ${link.kind}${link.isWaitedOn ? " waited" : ""}`} d={curve(way)} markerEnd="url(#arrow)" />;
      })}
      {boxes.map((box) => {
        const corner = corners.get(box.id);
        if (corner === undefined || !isSeen([corner])) return null;
        return <GraphBox key={box.id} box={box} corner={corner} onUnfold={onUnfold} />;
      })}
    </svg>
  );
}

/** Whether what lies between some points is in sight of the box that scrolls, or nearly. */
function useSight(place: RefObject<HTMLDivElement | null>, isLimited: boolean): (points: readonly Point[]) => boolean {
  const [[left, top], setCorner] = useState<readonly [number, number]>([0, 0]);
  useEffect(() => {
    const box = place.current;
    if (box === null || !isLimited) return undefined;
    // In steps, so that scrolling does not draw with each pixel.
    const step = (pixels: number) => Math.floor(pixels / NEAR_PX) * NEAR_PX;
    const look = () => setCorner((before) => {
      const now = [step(box.scrollLeft), step(box.scrollTop)] as const;
      return before[0] === now[0] && before[1] === now[1] ? before : now;
    });
    look();
    box.addEventListener("scroll", look, { passive: true });
    return () => box.removeEventListener("scroll", look);
  }, [place, isLimited]);
  if (!isLimited) return () => true;
  const right = left + (place.current?.clientWidth ?? 0) + 2 * NEAR_PX;
  const bottom = top + (place.current?.clientHeight ?? 0) + 2 * NEAR_PX;
  return (points) => {
    const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
    const isBeside = Math.max(...xs) < left - NEAR_PX || Math.min(...xs) > right;
    return !isBeside && Math.max(...ys) >= top - NEAR_PX && Math.min(...ys) <= bottom;
  };
}

function GraphBox({ box, corner, onUnfold }: { box: Box; corner: Point; onUnfold: (id: string) => void }) {
  const [, navigate] = useLocation();
  const [first] = box.nodes;
  if (first === undefined) return null;
  const isGroup = box.nodes.length > 1;
  const { shape, hue, word } = isGroup ? named(box.word) : stateOf(first);
  const title = isGroup ? `${box.nodes.length} runs` : plain(first.label);
  const why = isGroup ? `${word}: ${box.nodes.map((each) => plain(each.label)).join(", ")}` : `${word}${first.why ? ` · ${plain(first.why)}` : ""}`;
  const to = runAt(first.runId);
  return (
    <a
      href={BASE + to}
      className={`graphbox ${hue}`}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        if (isGroup) onUnfold(box.id);
        else navigate(to);
      }}
    >
      <g transform={`translate(${corner.x} ${corner.y})`}>
        <title>{`${title}\n${why}`}</title>
        {isGroup && <rect x="4" y="4" width={BOX_WIDTH} height={BOX_HEIGHT} rx="5" className="card" />}
        <rect width={BOX_WIDTH} height={BOX_HEIGHT} rx="5" className="card" />
        <g transform="translate(10 9)">
          <ShapeMark shape={shape} />
        </g>
        <text x="30" y="20" className="title">
          {cut(title, LABEL_CHARS)}
        </text>
        <text x="10" y="38" className="sub">
          {cut(!isGroup && first.why ? plain(first.why) : why, WHY_CHARS)}
        </text>
      </g>
    </a>
  );
}

function cut(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, chars - 1)}…` : text;
}
