import type { ReactNode } from "react";

type Props = { title: string; note?: ReactNode; right?: ReactNode; children: ReactNode; level?: 2 | 3; className?: string };

/** A box with a title. */
export function Panel({ title, note, right, children, className = "" }: Props) {
  return (
    <section className={`panel ${className}`} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {note !== undefined && <span className="note">{note}</span>}
        {right !== undefined && <span className="right">{right}</span>}
      </header>
      {children}
    </section>
  );
}

/** Names and values below each other. */
export function Facts({ facts }: { facts: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
