// Filters under a name, in this browser.
import { useState } from "react";
import { Link } from "wouter";
import { prefer, preferences } from "../live/preferences";
import { useStore } from "../live/store";
import { Form } from "./form";

const BUILT_IN = [
  { name: "All", search: "" },
  { name: "Today", search: new URLSearchParams({ time: "today" }).toString() },
  { name: "Failed", search: new URLSearchParams({ q: "state:failed", flat: "1" }).toString() },
  { name: "Active", search: new URLSearchParams({ hide: "1" }).toString() },
];

export function SavedFilters({ search }: { search: string }) {
  const { saved } = useStore(preferences);
  const [name, setName] = useState<string | null>(null);
  const all = [...BUILT_IN, ...saved];
  const isKnown = all.some((each) => each.search === search);
  const save = () => {
    if (name?.trim()) prefer({ saved: [...saved.filter((each) => each.name !== name.trim()), { name: name.trim(), search }] });
    setName(null);
  };
  return (
    <nav className="tabs saved" aria-label="saved filters">
      {all.map((each) => (
        <Link key={each.name} href={each.search === "" ? "/runs" : `/runs?${each.search}`} aria-current={each.search === search ? "page" : undefined}>
          {each.name}
        </Link>
      ))}
      {name === null ? (
        <>
          {!isKnown && (
            <button type="button" className="plain" onClick={() => setName("")}>+ save this filter</button>
          )}
          {saved.some((each) => each.search === search) && (
            <button type="button" className="plain" onClick={() => prefer({ saved: saved.filter((each) => each.search !== search) })}>
              forget it
            </button>
          )}
        </>
      ) : (
        <Form onSend={save}>
          <input autoFocus aria-label="name of this filter" placeholder="name" value={name} onChange={(event) => setName(event.target.value)} onBlur={save} />
        </Form>
      )}
    </nav>
  );
}
