// Rows that keys move through. One row of a page is in the tab order; it is known by its run, so
// that it stays in focus while the list around it changes.
import { createContext, useContext, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useKeys } from "../live/keys";

type Place = { active: string | null; focused: (id: string) => void };
const RowPlace = createContext<Place>({ active: null, focused: () => {} });

const ROW = "[data-row]";

/** Around everything of a page through which `j` and `k` move. */
export function RowScope({ children }: { children: ReactNode }) {
  const [active, setActive] = useState<string | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const lastIndex = useRef(-1);

  const rows = () => [...(box.current?.querySelectorAll<HTMLElement>(ROW) ?? [])];
  const move = (step: number) => {
    const all = rows();
    const at = all.findIndex((each) => each.contains(document.activeElement));
    const next = at < 0 ? all.find((each) => each.dataset["row"] === active) ?? all[0] : all[at + step];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  useKeys({ j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1) });

  // When the run in focus leaves the list, the next one gets the focus.
  useLayoutEffect(() => {
    const all = rows();
    const at = all.findIndex((each) => each === document.activeElement);
    if (at >= 0) lastIndex.current = at;
    else if (lastIndex.current >= 0 && document.activeElement === document.body) {
      all[Math.min(lastIndex.current, all.length - 1)]?.focus({ preventScroll: true });
    }
  });
  const focused = (id: string) => {
    setActive(id);
    lastIndex.current = rows().findIndex((each) => each.dataset["row"] === id);
  };
  const blurred = () => {
    // By hand, not because the row went: then the focus is somewhere else by now.
    setTimeout(() => {
      if (document.activeElement !== document.body) lastIndex.current = -1;
    });
  };
  return (
    <RowPlace.Provider value={{ active, focused }}>
      <div ref={box} onBlur={blurred} className="rowscope">
        {children}
      </div>
    </RowPlace.Provider>
  );
}

/** What one row needs: whether it is the one in the tab order, and keys that act on it. */
export function useRow(id: string, isFirst: boolean, keys: Record<string, () => void>) {
  const { active, focused } = useContext(RowPlace);
  const isActive = active === null ? isFirst : active === id;
  return {
    "data-row": id,
    tabIndex: isActive ? 0 : -1,
    onFocus: () => {
      if (active !== id) focused(id);
    },
    onKeyDown: (event: KeyboardEvent<HTMLElement>) => {
      if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      const act = keys[event.key === " " ? "Space" : event.key];
      if (act === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      // The page's own keys listen on the document, which React's events have passed already.
      event.nativeEvent.stopImmediatePropagation();
      act();
    },
  };
}

/** A cell of a row, of this class. */
export function Cell({ of, children }: { of?: string; children?: ReactNode }) {
  return <span role="gridcell" className={of}>{children}</span>;
}
