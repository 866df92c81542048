// Messages to the operator's session: how runs ended, questions, notices, alerts. Looking takes none.
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { reason } from "../api/actions";
import { post } from "../api/client";
import { useInbox } from "../api/queries";
import type { Message } from "../api/types";
import { useWhyNot } from "../components/actions-allowed";
import { WordChip } from "../components/chip";
import { Heading } from "../components/heading";
import { Scrolls } from "../components/panel";
import { RowScope, useRow } from "../components/rows";
import { runAt } from "../components/routes";
import { Said } from "../components/said";
import { Answered, Empty } from "../components/states";
import { Ago } from "../components/when";
import { useKeys } from "../live/keys";
import { queries } from "../live/live";
import { toldDone, toldFailed } from "../live/toasts";
import { withoutSign } from "../text/alerts";
import { plain } from "../text/marks";
import { counted } from "../text/amounts";

const WORDS: Record<string, string> = { question: "asks", blocker: "blocked" };

export default function InboxPage() {
  const [search, setSearch] = useSearchParams();
  const isAll = search.get("all") === "1";
  const inbox = useInbox(isAll);
  const whyNot = useWhyNot();
  const messages = [...(inbox.data?.messages ?? [])].reverse();
  const unread = messages.filter((each) => each.consumedAt === null);
  const toggle = () => setSearch(isAll ? {} : { all: "1" }, { replace: true });
  useKeys({ h: toggle });
  return (
    <RowScope>
      <Heading title="Inbox" note={inbox.data && counted(unread.length, "unread message")} />
      <div className="filters">
        <label className="check button">
          <input type="checkbox" checked={isAll} onChange={toggle} /> read ones, too <kbd>h</kbd>
        </label>
        {unread.length > 0 && (
          <button type="button" disabled={whyNot !== null} title={whyNot ?? undefined} onClick={() => void acknowledge(unread)}>
            Mark all {unread.length} as read
          </button>
        )}
        {inbox.data?.truncated && <span className="note">{inbox.data.truncated.shown} are shown; there are more</span>}
      </div>
      <Answered query={inbox}>
        {() =>
          messages.length === 0 ? (
            <div className="box">
              <Empty title={isAll ? "No messages yet" : "Nothing unread"}>
                <p>How runs end, what they ask and what they report comes here.</p>
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

async function acknowledge(messages: readonly Message[]): Promise<void> {
  try {
    await post("/v1/inbox/ack", { messageIds: messages.map((each) => each.id) });
    toldDone(`Marked ${counted(messages.length, "message")} as read`);
  } catch (error) {
    toldFailed("They were not marked as read", reason(error));
  }
  void queries.invalidateQueries({ predicate: ({ queryKey: [about] }) => about === "list" });
}

function MessageLine({ message, isFirst }: { message: Message; isFirst: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const whyNot = useWhyNot();
  const isUnread = message.consumedAt === null;
  const toggle = () => setOpen(!isOpen);
  const row = useRow(message.id, isFirst, { Enter: toggle, o: toggle, Space: toggle, x: () => void acknowledge([message]) });
  const word = message.status ?? WORDS[message.kind] ?? "queued";
  return (
    <li className={isUnread ? "message unread" : "message"} {...row}>
      <div className="line need">
        <WordChip word={word} text={message.status ?? message.kind} />
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
          {isUnread ? (
            <button type="button" className="plain" disabled={whyNot !== null} title={whyNot ?? undefined} onClick={() => void acknowledge([message])}>
              {message.awaited ? "awaited" : "Mark as read"}
            </button>
          ) : (
            <span className="note">
              read <Ago at={message.consumedAt} />
            </span>
          )}
        </span>
      </div>
      {isOpen && (
        <Scrolls name="message">
          <Said text={message.text} mono />
        </Scrolls>
      )}
    </li>
  );
}
