// What the worker said and did: virtual, followed live, searched by the daemon. Below it a line to
// write into the session.
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { answer, send } from "../../api/actions";
import type { RunDetail } from "../../api/types";
import { Act, ForOperators, useWhyNot } from "../../components/act";
import { Choice, Form } from "../../components/form";
import { runAt } from "../../components/routes";
import { Said } from "../../components/said";
import { Spacer } from "../../components/spacer";
import { copy, download, Empty, Skeleton, Trouble } from "../../components/states";
import { useAddress } from "../../live/address";
import { useDraft } from "../../live/drafts";
import { useKeys } from "../../live/keys";
import { placeOf, useTranscript, wholeText, type FoundLine, type Transcript } from "../../live/transcript";
import { counted } from "../../text/amounts";
import { plain } from "../../text/marks";
import { can, isEnded } from "../../text/states";
import { clockSeconds } from "../../text/times";

const TYPES = ["text", "thinking", "tool", "error", "system", "user"];
const LINE_PX = 20;
/** Lines that are drawn together: a virtual list reckons with each of its rows, and a million are too many for it. */
const BLOCK = 25;
/** A search of a long transcript is no work for each key. */
const TYPING_MS = 200;
const NEAR_END_PX = 40;

export function TranscriptTab({ run }: { run: RunDetail }) {
  const [inAddress, put] = useAddress();
  const [grep, type, attempt] = ["grep", "type", "attempt"].map(inAddress) as [string, string, string];
  const line = Number(inAddress("line"));
  const [follows, setFollows] = useState(line === 0);
  const asked = useSettled(grep, TYPING_MS);
  const filter = { grep: asked, type, attempt };
  const [found, need] = useTranscript(run.runId, filter);
  const searched = (words: string) => {
    put("grep", words);
    // From the newest hits on: those at any other place would be a second search.
    setFollows(true);
  };
  const search = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLDivElement>(null);
  // The line that was brought in sight, once: whoever scrolls away and back is not moved.
  const isThere = useRef(0);
  useKeys({ "/": () => search.current?.focus(), f: () => setFollows((before) => !before) });

  const blocks = useVirtualizer({
    count: Math.ceil(found.total / BLOCK),
    getScrollElement: () => box.current,
    estimateSize: (block) => linesIn(block, found.total) * LINE_PX,
    overscan: 1,
  });
  useEffect(() => (blocks.measure(), void (isThere.current = 0)), [asked, type, attempt, blocks]);
  const shown = blocks.getVirtualItems();
  useEffect(() => {
    // Its end comes by itself; what is there before it is scrolled to, nobody asked for.
    if (follows && shown.at(-1)?.index !== Math.ceil(found.total / BLOCK) - 1) return;
    for (const { index } of shown) {
      for (let at = 0; at < linesIn(index, found.total); at += 1) {
        if (!found.lines.has(index * BLOCK + at)) need(index * BLOCK + at);
      }
    }
  });
  useEffect(() => {
    if (follows && found.total > 0) blocks.scrollToIndex(Math.ceil(found.total / BLOCK) - 1, { align: "end" });
  }, [follows, found.total, blocks]);
  const marked = useCallback((it: HTMLElement | null) => (it === null || isThere.current === line ? undefined : ((isThere.current = line), it.scrollIntoView({ block: "center" }))), [line]);
  useEffect(() => {
    if (line > 0) setFollows(false);
    if (line > 0 && isThere.current !== line && found.isLoaded) void placeOf(run.runId, filter, line).then((at) => blocks.scrollToIndex(Math.floor(at / BLOCK), { align: "start" }));
    // When it is asked for, and not with each line that comes.
    // eslint-disable-next-line
  }, [line, found.isLoaded]);
  const scrolled = () => {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    if (!isAtEnd && follows && blocks.scrollDirection === "backward") setFollows(false);
  };
  const bottom = (blocks.scrollOffset ?? 0) + (blocks.scrollRect?.height ?? 0);
  const last = blocks.getVirtualItemForOffset(bottom);
  const seen = last === undefined ? 0 : last.index * BLOCK + Math.ceil(((bottom - last.start) / last.size) * linesIn(last.index, found.total));
  const below = found.total - seen;

  return (
    <div className="transcript">
      <div className="filters">
        <label className="search">
          <span className="visually-hidden">search the transcript, a regular expression</span>
          <input ref={search} value={grep} onChange={(event) => searched(event.target.value)} placeholder="a regular expression" />
          <span className="note">{found.isLoaded && counted(found.total, "line")}</span>
        </label>
        <Choice name="types of lines" value={type} options={[["", "all types"], ...TYPES.map((each) => [each, each] as const)]} onChoose={(next) => put("type", next)} />
        <Choice name="attempt" value={attempt} options={[["", "all attempts"], ...run.attempts.map(({ number }) => [number, `attempt ${number}`] as const)]} onChoose={(next) => put("attempt", next)} />
        <label className="check button">
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.target.checked)} />
          follow <kbd>f</kbd>
        </label>
        <button type="button" onClick={() => void copy(wholeText(run.runId, filter))}>Copy</button>
        <button type="button" onClick={() => void download(`${run.runId}.log`, wholeText(run.runId, filter))}>Download</button>
      </div>
      {found.error !== null && <Trouble error={found.error} />}
      <div className="box lines-box">
        <div ref={box} className="log" onScroll={scrolled} onWheel={({ deltaY }) => deltaY < 0 && setFollows(false)} tabIndex={0} role="log" aria-label="transcript" aria-live="off">
          {!found.isLoaded && <Skeleton />}
          {found.isLoaded && found.total === 0 && <Nothing run={run} note={found.note} isFiltered={asked !== "" || type !== "" || attempt !== ""} />}
          {found.dropped > 0 && <p className="note cut">{counted(found.dropped, "older line")} are gone; the newest are kept.</p>}
          <Spacer height={shown[0]?.start ?? 0} />
          {shown.map(({ key, index }) => (
            <div key={key} ref={blocks.measureElement} data-index={index}>
              <Block id={run.runId} lines={found.lines} first={index * BLOCK} number={linesIn(index, found.total)} line={line} marked={marked} />
            </div>
          ))}
          <Spacer height={blocks.getTotalSize() - (shown.at(-1)?.end ?? 0)} />
        </div>
        {!follows && below > 0 && (
          <button type="button" className="below" onClick={() => setFollows(true)}>{counted(below, "line")} below <kbd>f</kbd></button>
        )}
        <ForOperators>
          {(run.pendingRequestCount > 0 || can(run, "resume") || (can(run, "steer") && !isEnded(run))) && <Attach run={run} />}
        </ForOperators>
      </div>
      <p className="note">a line longer than 8,000 characters is cut and says by how much</p>
    </div>
  );
}

function linesIn(block: number, total: number): number {
  return Math.min(BLOCK, total - block * BLOCK);
}

/** A value that was the same for so long. */
function useSettled<T>(value: T, wait: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), wait);
    return () => clearTimeout(timer);
  }, [value, wait]);
  return settled;
}

type BlockProps = { id: string; lines: Transcript["lines"]; first: number; number: number; line: number; marked: (it: HTMLElement | null) => void };

const Block = memo(function Block({ id, lines, first, number, line: wanted, marked }: BlockProps) {
  return Array.from({ length: number }, (_, at) => {
    const line = lines.get(first + at);
    return (
      <div key={line?.seq ?? -at} ref={line?.seq === wanted ? marked : null} className={`logline ${line?.type ?? ""}${line?.seq === wanted ? " marked" : ""}`}>
        {line ? <Line id={id} line={line} /> : <span className="note">{line === null ? "gone" : "…"}</span>}
      </div>
    );
  });
});

function Nothing({ run, note, isFiltered }: { run: RunDetail; note: string | null; isFiltered: boolean }) {
  if (note !== null) return <Empty title={note} />;
  if (isFiltered) return <Empty title="No line fits" />;
  return <Empty title={isEnded(run) ? "It said nothing" : "It has said nothing yet"} />;
}

const FOLD_CHARS = 240;
const WORDS: Record<string, string> = { tool: "tool", error: "error", thinking: "thinks", system: "·", user: "›" };

/** One line; a long one and a tool's output are folded to their beginning. */
function Line({ id, line }: { id: string; line: FoundLine }) {
  const [isOpen, setOpen] = useState(false);
  const folds = line.type === "tool" || line.type === "thinking";
  const flat = line.type === "tool" ? toolLine(line.text) : line.text;
  const isFolded = folds && !isOpen && flat.length > FOLD_CHARS;
  return (
    <>
      <span className="ts">
        <Link tabIndex={-1} href={`${runAt(id, "transcript")}?line=${line.seq}`} title="the address of this line, among all lines">
          {line.seq}
        </Link>{" "}
        {clockSeconds(line.ts)}
      </span>
      <span className="kind">{WORDS[line.type] ?? ""}</span>
      <span>
        <Said text={isFolded ? flat.slice(0, FOLD_CHARS) : isOpen ? line.text : flat} hits={line.hits} mono />
        {(isFolded || isOpen) && (
          <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "fold" : `${(flat.length - FOLD_CHARS).toLocaleString("en")} more characters`}
          </button>
        )}
      </span>
    </>
  );
}

/** What a tool was, was asked and said, behind each other; its sign as one that every font has. */
function toolLine(text: string): string {
  return text.replace(/^✅/, "✓").replace(/^❌/, "✗").replaceAll("\n", " ");
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
    <Form className="attach" onSend={submit}>
      <input aria-label={what} placeholder={what} value={words} onChange={(event) => setWords(event.target.value)} autoComplete="off" />
      <Act type="submit" className="primary" disabled={isSending || words.trim() === ""} hint="↵">Send</Act>
    </Form>
  );
}
