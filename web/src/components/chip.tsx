import { underWay } from "../api/actions";
import { useStorePart } from "../live/store";
import { named, stateOf, type Hue, type Shape, type Standing } from "../text/states";
import { ShapeMark } from "./shape";

/** The state of a run: shape, word, colour, in this order of importance. */
export function StateChip({ run }: { run: Standing & { runId?: string; cancelAt?: string | null; interruptAt?: string | null } }) {
  const { word, shape, hue } = stateOf(run);
  const doing = useStorePart(underWay, (all) => (run.runId === undefined ? undefined : all[run.runId]));
  const soon = run.cancelAt != null ? "cancels soon" : run.interruptAt != null ? "turn ends soon" : undefined;
  const planned = run.outcome === null ? soon : undefined;
  return <Mark shape={shape} hue={hue} text={doing ?? planned ?? word} />;
}

/** A word of the wire as a chip; `text` stands in its place where more is to be said. */
export function WordChip({ word, text }: { word: string; text?: string }) {
  const { word: shown, shape, hue } = named(word);
  return <Mark shape={shape} hue={hue} text={text ?? shown} />;
}

export function Mark({ shape, hue, text }: { shape: Shape; hue: Hue; text: string }) {
  return (
    <span className={`chip ${hue}`}>
      <ShapeMark shape={shape} />
      <span>{text}</span>
    </span>
  );
}
