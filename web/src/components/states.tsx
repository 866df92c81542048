// What stands where there is nothing, not yet, or something wrong.
import { useEffect, useState, type ReactNode } from "react";
import type { UseQueryResult } from "@tanstack/react-query";
import { Problem } from "../api/client";
import { toldDone, toldFailed } from "../live/toasts";

const SKELETON_AFTER_MS = 200;

/** Only after 200 ms, and only where nothing was shown before. */
export function Skeleton() {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), SKELETON_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="skeleton" aria-busy="true">
      {isShown && (
        <>
          <span className="visually-hidden">loading</span>
          <i />
          <i />
          <i />
        </>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="title">{title}</p>
      {children}
    </div>
  );
}

/** A command to type, and a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <div className="command">
      <code>{text}</code>
      <CopyButton text={text} />
    </div>
  );
}

export function CopyButton({ text, word = "Copy" }: { text: string; word?: string }) {
  return (
    <button type="button" className="plain" onClick={() => void copy(text)}>{word}</button>
  );
}

export async function copy(text: string | Promise<string>): Promise<void> {
  try {
    await navigator.clipboard.writeText(await text);
    toldDone("Copied");
  } catch {
    toldFailed("The browser did not let us copy", "Select it, and copy it by hand.");
  }
}

/** Into a file of the browser's own choice of place. */
export async function download(name: string, text: Promise<string>): Promise<void> {
  const file = document.createElement("a");
  try {
    file.href = URL.createObjectURL(new Blob([await text], { type: "text/plain" }));
  } catch (error) {
    return toldFailed("It was not downloaded", (error as Error).message);
  }
  file.download = name;
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href));
}

/** What went wrong, and the way out; what is shown already stays. */
export function Trouble({ error, again }: { error: Error; again?: () => void }) {
  const problem = error instanceof Problem ? error : null;
  return (
    <div className="trouble" role="alert">
      <strong>{problem?.code === "unreachable" ? "The daemon does not answer." : error.message}</strong>
      {problem?.code === "unreachable" && <span>Workers go on without it. This part comes when it is back.</span>}
      {problem?.hint && <span>{problem.hint}</span>}
      {again && (
        <button type="button" onClick={again}>Try again</button>
      )}
    </div>
  );
}

/** The answer to a question: what there is of it, else that it is coming, or why it does not. */
export function Answered<T>({ query, children }: { query: UseQueryResult<T, Error>; children: (found: T) => ReactNode }) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error !== null) return <Trouble error={query.error} again={() => void query.refetch()} />;
  return <Skeleton />;
}
