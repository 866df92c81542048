// One run: how it stands, why, and what can be done; below that, tabs that each load on their own.
import { Suspense, useEffect, useRef } from "react";
import { Link } from "wouter";
import { useRun } from "../../api/queries";
import type { RunDetail } from "../../api/types";
import { Heading } from "../../components/heading";
import { runAt } from "../../components/routes";
import { Answered, CopyButton, Skeleton } from "../../components/states";
import { plain } from "../../text/marks";
import { stateOf } from "../../text/states";
import { ChangesTab } from "./changes";
import { MessagesTab } from "./messages";
import { OverviewTab } from "./overview";
import { RawTab } from "./raw";
import { RunTop } from "./top";
import { TimelineTab } from "./timeline";
import { TranscriptTab } from "./transcript";
import { TreeTab } from "./tree";

const TABS = {
  overview: OverviewTab, transcript: TranscriptTab, timeline: TimelineTab, tree: TreeTab,
  changes: ChangesTab, messages: MessagesTab, raw: RawTab,
};
type Tab = keyof typeof TABS;

export default function RunPage({ id, tab }: { id: string; tab: string }) {
  const query = useRun(id);
  const run = query.data;
  const Body = TABS[tab as Tab] ?? OverviewTab;
  return (
    <>
      <Heading title={run === undefined ? id : `${stateOf(run).word}: ${plain(run.label)}`}>
        <nav className="crumbs" aria-label="where this is">
          <Link href="/runs">Runs</Link>
          {run?.requesterRun && <Link href={runAt(run.requesterRun)}>{run.requesterRun}</Link>}
          <code>{run?.runId ?? id}</code>
          <CopyButton text={run?.runId ?? id} />
        </nav>
      </Heading>
      {run === undefined && <h1 className="visually-hidden">{plain(id)}</h1>}
      <Answered query={query}>
        {(found) => (
          <>
            <RunTop run={found} />
            <Tabs run={found} tab={tab} />
            <Suspense fallback={<Skeleton />}>
              <div className="tab">
                <Body run={found} />
              </div>
            </Suspense>
          </>
        )}
      </Answered>
    </>
  );
}

function Tabs({ run, tab }: { run: RunDetail; tab: string }) {
  const numbers: Partial<Record<Tab, number>> = {
    changes: run.workspace?.changes?.files ?? 0,
    messages: run.requests.length,
  };
  const place = useRef<HTMLElement>(null);
  // On a small screen they scroll sideways; the one that is open is in sight.
  useEffect(() => {
    const box = place.current;
    const open = box?.querySelector<HTMLElement>("[aria-current]");
    if (box && open) box.scrollLeft = open.offsetLeft + open.offsetWidth / 2 - box.clientWidth / 2;
  }, [tab]);
  return (
    <nav ref={place} className="tabs" aria-label="about this run">
      {(Object.keys(TABS) as Tab[]).map((each) => (
        <Link
          key={each}
          href={runAt(run.runId, each === "overview" ? "" : each)}
          replace
          aria-current={each === tab ? "page" : undefined}
        >
          {each[0]?.toUpperCase() + each.slice(1)} {numbers[each] ? <span className="note">{numbers[each]}</span> : null}
        </Link>
      ))}
    </nav>
  );
}
