import { useEffect, useRef, type ReactNode } from "react";

type Props = { title: string; onClose: () => void; children: ReactNode; className?: string; hideTitle?: boolean };

/** A modal dialog; where the focus was, it is again when it closes. */
export function Dialog({ title, onClose, children, className = "", hideTitle = false }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      className={className}
      aria-label={title}
      onClose={onClose}
      // Where it began: words that are marked with the mouse may end outside.
      onPointerDown={(event) => {
        if (event.target === box.current) onClose();
      }}
    >
      <section className="dialog-body">
        {!hideTitle && (
          <header>
            <h2>{title}</h2>
            <button type="button" className="plain" onClick={onClose}>
              Close <kbd>Esc</kbd>
            </button>
          </header>
        )}
        {children}
      </section>
    </dialog>
  );
}
