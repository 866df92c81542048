// Messages to the operator's session: how runs ended, questions, notices, alerts. Looking takes none.
import { useState } from "react";
import { Link } from "wouter";
import { markRead, takeFor } from "../api/actions";
import { useInbox } from "../api/queries";
import type { Message } from "../api/types";
import { Act } from "../components/act";
import { WordChip } from "../components/chip";
import { Heading } from "../components/heading";
import { Scrolls } from "../components/panel";
import { RowScope, useRow } from "../components/rows";
import { runAt } from "../components/routes";
import { Said } from "../components/said";
import { Answered, Empty } from "../components/states";
import { Ago } from "../components/when";
import { useAddress } from "../live/address";
import { useKeys } from "../live/keys";
import { withoutSign } from "../text/alerts";
import { person, plain } from "../text/marks";
import { counted } from "../text/amounts";

const WORDS: Record<string, string> = { question: "asks", blocker: "blocked" };

export default function InboxPage() {
  const [inAddress, put] = useAddress();
  const isAll = inAddress("all") === "1";
  const inbox = useInbox(isAll);
  const messages = [...(inbox.data?.messages ?? [])].reverse().filter((each) => isAll || isUnread(each));
  const unread = messages.filter(isUnread);
  const ended = unread.filter((each) => each.kind === "announcement");
  const toggle = () => put("all", isAll ? "" : "1");
  useKeys({ h: toggle });
  return (
    <RowScope>
      <Heading title="Inbox" note={inbox.data && counted(unread.length, "unread message")} />
      <div className="filters">
        <label className="check button">
          <input type="checkbox" checked={isAll} onChange={toggle} /> read ones, too <kbd>h</kbd>
        </label>
        {ended.length > 1 && (
          <Act onClick={() => void markRead(ended)}>
            Mark {counted(ended.length, "result")} as read
          </Act>
        )}
        {inbox.data?.truncated && <span className="note">{inbox.data.truncated.shown} are shown; there are more</span>}
      </div>
      <Answered query={inbox}>
        {() =>
          messages.length === 0 ? (
            <div className="box">
              <Empty title={isAll ? "No messages yet" : "Nothing unread"}>
                <p>How runs end, what they ask and what they report comes here. <Link href="/runs">All runs</Link></p>
              </Empty>
            </div>
          ) : (
            <ul className="box lines">
              {messages.map((each, at) => (
                <MessageLine key={each.id} message={each} isFirst={at === 0} />
              ))}
            </ul>
          )
        }
      </Answered>
    </RowScope>
  );
}

/** Nobody marked it as read, and nobody of its session took it. */
function isUnread({ consumedAt, dismissedAt }: Message): boolean {
  return consumedAt === null && dismissedAt === null;
}

function MessageLine({ message, isFirst }: { message: Message; isFirst: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const isOfEnd = message.kind === "announcement";
  const mark = () => void (isOfEnd && markRead([message]));
  const toggle = () => setOpen(!isOpen);
  const row = useRow(message.id, isFirst, { Enter: toggle, o: toggle, Space: toggle, x: mark });
  const word = message.status ?? WORDS[message.kind] ?? "queued";
  return (
    <li className={isUnread(message) ? "message unread" : "message"} {...row}>
      <div className="line need">
        <WordChip word={word} {...(message.status === null && { text: message.kind })} />
        <span className="name">
          <Link href={runAt(message.runId)} className="label" tabIndex={-1}>
            <Said text={message.label || message.runId} />
          </Link>
        </span>
        <button type="button" className="why headline" aria-expanded={isOpen} onClick={toggle}>
          {plain(message.kind === "alert" ? withoutSign(message.text) : message.headline || message.text)}
        </button>
        <span className="age num">
          <Ago at={message.sentAt} />
        </span>
        <span className="acts">
          {message.dismissedAt !== null ? (
            <span className="note">
              read <Ago at={message.dismissedAt} />
            </span>
          ) : (
            isOfEnd && isUnread(message) && (
              <Act className="plain" onClick={mark}>Mark as read</Act>
            )
          )}
          {message.consumedAt !== null && (
            <span className="note">
              taken <Ago at={message.consumedAt} />
            </span>
          )}
        </span>
      </div>
      {isOpen && (
        <>
          <Scrolls name="message">
            <Said text={message.text} mono />
          </Scrolls>
          <p className="note body">
            {message.awaited ? "about to be taken by " : "for "}
            <Said text={person(message.sessionKey)} />{" "}
            {message.consumedAt === null && message.kind !== "question" && (
              <Act title="that session does not get it then" onClick={() => void takeFor(message)}>Take it in its name</Act>
            )}
          </p>
        </>
      )}
    </li>
  );
}
