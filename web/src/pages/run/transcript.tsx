// What the worker said and did: virtual, followed live, searched by the daemon. Below it a line to
// write into the session.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useDeferredValue, useEffect, useRef, useState } from "react";
import { answer, send } from "../../api/actions";
import type { LogLine, RunDetail } from "../../api/types";
import { useWhyNot } from "../../components/actions-allowed";
import { Said } from "../../components/said";
import { Spacer } from "../../components/spacer";
import { copy, Empty, Skeleton, Trouble } from "../../components/states";
import { useDraft } from "../../live/drafts";
import { useKeys } from "../../live/keys";
import { useTranscript } from "../../live/transcript";
import { counted } from "../../text/amounts";
import { plain } from "../../text/marks";
import { isEnded } from "../../text/states";
import { clockSeconds } from "../../text/times";

const TYPES = ["text", "thinking", "tool", "error", "system", "user"];
const LINE_PX = 20;
const NEAR_END_PX = 40;

export function TranscriptTab({ run }: { run: RunDetail }) {
  const [grep, setGrep] = useState("");
  const [type, setType] = useState("");
  const [attempt, setAttempt] = useState("");
  const [follows, setFollows] = useState(true);
  const asked = useDeferredValue(grep);
  const [found, need] = useTranscript(run.runId, { grep: asked, type, attempt });
  const search = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLDivElement>(null);
  useKeys({ "/": () => search.current?.focus(), f: () => setFollows((before) => !before) });

  const rows = useVirtualizer({
    count: found.total,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
    getItemKey: (place) => found.lines.get(place)?.seq ?? `place ${place}`,
  });
  const shown = rows.getVirtualItems();
  useEffect(() => {
    for (const each of shown) if (!found.lines.has(each.index)) need(each.index);
  });
  useEffect(() => {
    if (follows && found.total > 0) rows.scrollToIndex(found.total - 1, { align: "end" });
  }, [follows, found.total, rows]);
  const scrolled = () => {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    if (!isAtEnd && follows && rows.scrollDirection === "backward") setFollows(false);
  };
  const last = shown.at(-1)?.index ?? -1;
  const below = found.total - 1 - last;

  return (
    <div className="transcript">
      <div className="filters">
        <label className="search">
          <span className="visually-hidden">search the transcript, a regular expression</span>
          <input ref={search} value={grep} onChange={(event) => setGrep(event.target.value)} placeholder="a regular expression" />
          <span className="note">{found.isLoaded && counted(found.total, "line")}</span>
        </label>
        <select aria-label="types of lines" value={type} onChange={(event) => setType(event.target.value)}>
          <option value="">all types</option>
          {TYPES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <select aria-label="attempt" value={attempt} onChange={(event) => setAttempt(event.target.value)}>
          <option value="">all attempts</option>
          {run.attempts.map((each) => (
            <option key={each.number} value={each.number}>
              attempt {each.number}
            </option>
          ))}
        </select>
        <label className="check button">
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.target.checked)} />
          follow <kbd>f</kbd>
        </label>
        <button type="button" onClick={() => void copy([...found.lines].sort(([a], [b]) => a - b).map(([, line]) => line.text).join("\n"))}>
          Copy
        </button>
      </div>
      {found.error !== null && <Trouble error={found.error} />}
      <div className="box lines-box">
        <div ref={box} className="log" onScroll={scrolled} tabIndex={0} role="log" aria-label="transcript" aria-live="off">
          {!found.isLoaded && <Skeleton />}
          {found.isLoaded && found.total === 0 && <Nothing run={run} note={found.note} isFiltered={asked !== "" || type !== "" || attempt !== ""} />}
          {found.dropped > 0 && <p className="note cut">{counted(found.dropped, "older line")} are gone; the newest are kept.</p>}
          <Spacer height={shown[0]?.start ?? 0} />
          {shown.map((each) => {
            const line = found.lines.get(each.index);
            return (
              <div key={each.key} ref={rows.measureElement} data-index={each.index} className={`logline ${line?.type ?? ""}`}>
                {line === undefined ? <span className="note">…</span> : <Line line={line} />}
              </div>
            );
          })}
          <Spacer height={rows.getTotalSize() - (shown.at(-1)?.end ?? 0)} />
        </div>
        {!follows && below > 0 && (
          <button type="button" className="below" onClick={() => setFollows(true)}>
            {counted(below, "line")} below <kbd>f</kbd>
          </button>
        )}
        <Attach run={run} />
      </div>
      <p className="note">a line longer than 8,000 characters is cut and says by how much</p>
    </div>
  );
}

function Nothing({ run, note, isFiltered }: { run: RunDetail; note: string | null; isFiltered: boolean }) {
  if (note !== null) return <Empty title={note} />;
  if (isFiltered) return <Empty title="No line fits" />;
  return <Empty title={isEnded(run) ? "It said nothing" : "It has said nothing yet"} />;
}

const FOLD_CHARS = 240;
const WORDS: Record<string, string> = { tool: "tool", error: "error", thinking: "thinks", system: "·", user: "›" };

/** One line; a long one and a tool's output are folded to their beginning. */
function Line({ line }: { line: LogLine }) {
  const [isOpen, setOpen] = useState(false);
  const folds = line.type === "tool" || line.type === "thinking";
  const flat = line.type === "tool" ? toolLine(line.text) : line.text;
  const isFolded = folds && !isOpen && flat.length > FOLD_CHARS;
  return (
    <>
      <span className="seq">{line.seq}</span>
      <span className="ts">{clockSeconds(line.ts)}</span>
      <span className="kind">{WORDS[line.type] ?? ""}</span>
      <span>
        <Said text={isFolded ? flat.slice(0, FOLD_CHARS) : isOpen ? line.text : flat} mono />
        {(isFolded || isOpen) && (
          <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "fold" : `${(flat.length - FOLD_CHARS).toLocaleString("en")} more characters`}
          </button>
        )}
      </span>
    </>
  );
}

/** What a tool was, was asked and said, behind each other; its sign as letters that every font has. */
function toolLine(text: string): string {
  return text.replace(/^✅/, "✓").replace(/^❌/, "✗").replaceAll("\n", "  ");
}

/** A line into the session: an answer to its question, else a message, which may start it again. */
function Attach({ run }: { run: RunDetail }) {
  const question = run.requests.find((each) => each.status === "pending" && each.priority === null);
  const [words, setWords, clear] = useDraft(`attach/${run.runId}`);
  const [isSending, setSending] = useState(false);
  const whyNot = useWhyNot();
  const what = question !== undefined ? `answer: ${plain(question.question)}` : isEnded(run) ? "go on in the same session" : "write into the session";
  const submit = async () => {
    const text = words.trim();
    if (text === "" || isSending || whyNot !== null) return;
    setSending(true);
    const isTaken = await (question === undefined ? send(run, text) : answer(run, question.requestId, text, "answer"));
    setSending(false);
    if (isTaken) clear();
  };
  return (
    <form
      className="attach"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <input aria-label={what} placeholder={what} value={words} onChange={(event) => setWords(event.target.value)} autoComplete="off" />
      <button type="submit" className="primary" disabled={isSending || whyNot !== null || words.trim() === ""} title={whyNot ?? undefined}>
        Send <kbd>↵</kbd>
      </button>
    </form>
  );
}
