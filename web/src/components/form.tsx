// Forms that send to the daemon, and a choice of one of some words.
import type { ComponentProps } from "react";

export function Form({ onSend, ...others }: ComponentProps<"form"> & { onSend: () => unknown }) {
  return <form {...others} onSubmit={(event) => (event.preventDefault(), void onSend())} />;
}

type ChoiceProps = { name: string; value: string | number; options: Iterable<readonly [string | number, string]>; onChoose: (value: string) => void };

export function Choice({ name, value, options, onChoose }: ChoiceProps) {
  return (
    <select aria-label={name} value={value} onChange={(event) => onChoose(event.target.value)}>
      {[...options].map(([each, words]) => (
        <option key={each} value={each}>
          {words}
        </option>
      ))}
    </select>
  );
}
