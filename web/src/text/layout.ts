// Boxes placed in layers from left to right. Slow for hundreds of them, so the page has it done by a
// worker (live/layout.ts), and what places them is loaded by nobody else.
import { Graph as Layered, layout } from "@dagrejs/dagre";
import { BOX_HEIGHT, BOX_WIDTH, linkId, type Placement, type Point, type Wanted } from "./graph";

export function placed({ boxes, links }: Wanted): Placement {
  const graph = new Layered().setGraph({ rankdir: "LR", nodesep: 18, ranksep: 44, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of boxes) graph.setNode(id, { width: BOX_WIDTH, height: BOX_HEIGHT });
  for (const { source, target } of links) graph.setEdge(source, target);
  layout(graph);
  const middle = (id: string) => graph.node(id) as Point;
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const corner = ({ x, y }: Point) => ({ x: x - BOX_WIDTH / 2, y: y - BOX_HEIGHT / 2 });
  return {
    width,
    height,
    corners: new Map(boxes.map((id) => [id, corner(middle(id))])),
    ways: new Map(
      links.map((link) => [
        linkId(link),
        // From side to side; what lies between is the way around boxes of layers in between.
        [
          { x: middle(link.source).x + BOX_WIDTH / 2, y: middle(link.source).y },
          ...(graph.edge(link.source, link.target) as { points: Point[] }).points.slice(2, -2),
          { x: middle(link.target).x - BOX_WIDTH / 2, y: middle(link.target).y },
        ],
      ]),
    ),
  };
}
