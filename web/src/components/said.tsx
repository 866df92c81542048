// What a worker said: text nodes only, with marks for what cannot be seen, and colours as classes.
import { Fragment, memo, type ReactNode } from "react";
import { spans } from "../text/ansi";
import { inUnits, parts, type Hit } from "../text/hits";
import { pieces, type Piece } from "../text/marks";

type Props = {
  text: string;
  mono?: boolean;
  /** What a search found in it: from and to, in characters. */
  hits?: readonly (readonly number[])[] | undefined;
};

/** Text of a worker, kept apart from ours: it turns no direction around, and may break anywhere. */
export const Said = memo(function Said({ text, mono = false, hits = [] }: Props) {
  const found = inUnits(text, hits);
  return (
    <bdi className={mono ? "said mono" : "said"}>
      {spans(text).map(({ text: part, from, classes }, at) => {
        const shownPieces = pieces(part).map((each, number) => <Shown key={number} piece={each} from={from + each.from} hits={found} />);
        return classes === "" ? (
          <Fragment key={at}>{shownPieces}</Fragment>
        ) : (
          <span key={at} className={classes}>
            {shownPieces}
          </span>
        );
      })}
    </bdi>
  );
});

function Shown({ piece: { kind, text }, from, hits }: { piece: Piece; from: number; hits: readonly Hit[] }): ReactNode {
  if (kind === "mark") {
    return (
      <span className="mark" title="a character that cannot be seen">
        {text}
      </span>
    );
  }
  const shown = hits.length === 0 ? text : parts(text, from, hits).map((each, at) => (each.isHit ? <mark key={at}>{each.text}</mark> : each.text));
  if (kind === "link") {
    return (
      <a href={text} target="_blank" rel="noopener noreferrer nofollow">
        {shown}
      </a>
    );
  }
  return shown;
}
