import type { ReactNode } from "react";

type Props = { title: string; note?: ReactNode; right?: ReactNode; children: ReactNode; className?: string };

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

/** Text of any length in a box that scrolls, also with keys. */
export function Scrolls({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="body scrolls" tabIndex={0} role="group" aria-label={name}>
      {children}
    </div>
  );
}

type TableProps = { name: string; columns?: readonly string[]; numbers?: readonly number[]; rows: readonly (readonly ReactNode[])[] };

/** A table that scrolls within itself where it is too wide; `numbers` are the places of columns of numbers. */
export function Table({ name, columns = [], numbers = [], rows }: TableProps) {
  const classOf = (at: number) => (numbers.includes(at) ? "num" : undefined);
  return (
    <div className="table-box" tabIndex={0} role="group" aria-label={name}>
      <table>
        {columns.length > 0 && (
          <thead>
            <tr>
              {columns.map((each, at) => (
                <th key={each} scope="col" className={classOf(at)}>
                  {each}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, at) => (
                <td key={at} className={classOf(at)}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
