// What a worker said: text nodes only, with marks for what cannot be seen, and colours as classes.
import { Fragment, memo, type ReactNode } from "react";
import { spans } from "../text/ansi";
import { pieces, type Piece } from "../text/marks";

/** Text of a worker, kept apart from ours: it turns no direction around, and may break anywhere. */
export const Said = memo(function Said({ text, mono = false }: { text: string; mono?: boolean }) {
  return (
    <bdi className={mono ? "said mono" : "said"}>
      {spans(text).map(({ text: part, classes }, at) =>
        classes === "" ? (
          <Fragment key={at}>{pieces(part).map(shown)}</Fragment>
        ) : (
          <span key={at} className={classes}>
            {pieces(part).map(shown)}
          </span>
        ),
      )}
    </bdi>
  );
});

function shown({ kind, text }: Piece, at: number): ReactNode {
  if (kind === "mark") {
    return (
      <span key={at} className="mark" title="a character that cannot be seen">
        {text}
      </span>
    );
  }
  if (kind === "link") {
    return (
      <a key={at} href={text} target="_blank" rel="noopener noreferrer nofollow">
        {text}
      </a>
    );
  }
  return text;
}
