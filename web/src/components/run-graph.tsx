// Runs as boxes in layers, with lines for what waits for what. Boxes are links; drawn as SVG.
import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import type { Graph } from "../api/types";
import { counted } from "../text/amounts";
import { BOX_HEIGHT, BOX_WIDTH, curve, foldedGraph, placed, type Box } from "../text/graph";
import { plain } from "../text/marks";
import { named, stateOf } from "../text/states";
import { runAt } from "./routes";
import { ShapeMark } from "./shape";
import { WordChip } from "./chip";

const LABEL_CHARS = 24;
const WHY_CHARS = 28;
const BASE = import.meta.env.BASE_URL.replace(/\/$/, "");

export function RunGraph({ graph, folds }: { graph: Graph; folds: boolean }) {
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const drawn = useMemo(() => {
    const { boxes, links } = foldedGraph(graph.nodes, graph.edges, folds, unfolded);
    return placed(boxes, links);
  }, [graph, folds, unfolded]);
  const groups = drawn.boxes.filter((each) => each.nodes.length > 1);
  const hidden = groups.reduce((sum, each) => sum + each.nodes.length, 0);
  const unfold = (id: string) => setUnfolded(new Set(unfolded).add(id));
  return (
    <>
      <div className="box graph" tabIndex={0} role="group" aria-label="graph of runs">
        <svg width={drawn.width} height={drawn.height} viewBox={`0 0 ${drawn.width} ${drawn.height}`}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto-start-reverse">
              <path d="M0 .5 8 4 0 7.5z" className="arrow" />
            </marker>
          </defs>
          {drawn.links.map((link) => (
            <path
              key={`${link.source}>${link.target}`}
              className={`edge ${link.kind}${link.isWaitedOn ? " waited" : ""}`}
              d={curve(link.points)}
              markerEnd="url(#arrow)"
            />
          ))}
          {drawn.boxes.map((box) => (
            <GraphBox key={box.id} box={box} onUnfold={unfold} />
          ))}
        </svg>
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
              <button type="button" className="plain" onClick={() => unfold(group.id)}>
                unfold
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function GraphBox({ box, onUnfold }: { box: Box & { x: number; y: number }; onUnfold: (id: string) => void }) {
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
      <g transform={`translate(${box.x} ${box.y})`}>
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
          {cut(why, WHY_CHARS)}
        </text>
      </g>
    </a>
  );
}

function cut(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, chars - 1)}…` : text;
}
