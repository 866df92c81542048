// Of the rows of a page only those that are seen are drawn, while the page scrolls.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useLayoutEffect, useRef, useState } from "react";

const OVERSCAN = 10;

/** Which rows to draw, and how much room to leave before and after them.
 *
 * @param keyOf Stays the same function.
 * @param height Of a row that was not drawn yet, in pixels.
 */
export function useRowsInView<R, E extends HTMLElement>(rows: readonly R[], keyOf: (row: R) => string, height: number) {
  const box = useRef<E>(null);
  const [margin, setMargin] = useState(0);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => height,
    overscan: OVERSCAN,
    scrollMargin: margin,
    getItemKey: useCallback((at: number) => keyOf(rows[at] as R), [rows, keyOf]),
  });
  useLayoutEffect(() => {
    // Where it is, what is above it decides; that does not change by scrolling, and looking costs a layout.
    if (box.current === null || virtual.isScrolling) return;
    setMargin(Math.round(box.current.getBoundingClientRect().top + window.scrollY));
  });
  const shown = virtual.getVirtualItems();
  const begin = (shown[0]?.start ?? margin) - margin;
  const end = (shown.at(-1)?.end ?? margin) - margin;
  return {
    /** Around the rows and the room for others. */
    box,
    refOf: virtual.measureElement,
    shown: shown.map(({ index, key }) => ({ index, key, row: rows[index] as R })),
    before: begin,
    after: virtual.getTotalSize() - end,
  };
}
