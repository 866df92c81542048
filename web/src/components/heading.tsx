// The heading of a page stands in the shell's bar; pages say what it is, and the title with it.
import { useLayoutEffect, useState, type ReactNode } from "react";
import { createPortal } from "react-dom";
import { useTitle } from "./title";

export const HEADING_ID = "page-heading";

type Props = { title: string; note?: ReactNode; children?: ReactNode };

export function Heading({ title, note, children }: Props) {
  const [place, setPlace] = useState<HTMLElement | null>(null);
  useLayoutEffect(() => setPlace(document.getElementById(HEADING_ID)), []);
  useTitle(title);
  if (place === null) return null;
  return createPortal(
    <>
      {children ?? <h1>{title}</h1>}
      {note !== undefined && <span className="note">{note}</span>}
    </>,
    place,
  );
}
