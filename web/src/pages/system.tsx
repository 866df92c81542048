// The daemon itself: versions, disk, lanes, gates of providers, who was turned away, who is logged in.
import { useState } from "react";
import { role } from "../api/login";
import { reason } from "../api/actions";
import { post, request } from "../api/client";
import { useAgents, useCluster, useConfig, useDiagnostics, useLogins, useVersion, useWaiting } from "../api/queries";
import type { ChannelState, ClusterNode, Diagnostics, LoginCode } from "../api/types";
import { Act } from "../components/act";
import { Choice } from "../components/form";
import { Heading } from "../components/heading";
import { Facts, Panel, Table } from "../components/panel";
import { Said } from "../components/said";
import { Answered, Command, Empty } from "../components/states";
import { Ago, Ahead, Clock, Took } from "../components/when";
import { queries } from "../live/live";
import { useStore } from "../live/store";
import { toldDone, toldFailed } from "../live/toasts";
import { bytes, counted } from "../text/amounts";

export default function SystemPage() {
  const version = useVersion();
  const diagnostics = useDiagnostics();
  return (
    <>
      <Heading title="System" note={version.data && `daemon ${version.data.version}`} />
      <div className="two-columns">
        <div>
          <Nodes />
          <Lanes />
          {diagnostics.data && <Channels channels={diagnostics.data.notifications} />}
          <Answered query={diagnostics}>{(found) => <Doctor found={found} />}</Answered>
          <Configuration />
        </div>
        <aside aria-label="the daemon">
          <Panel title="Daemon">
            <Answered query={version}>
              {(found) => (
                <Facts
                  facts={[
                    ["version", found.version],
                    ["schema", found.schema],
                    ["pid", found.pid],
                    ["up", <Took key="up" from={found.startedAt} to={null} />],
                    ["new runs", found.degraded === null ? "are accepted" : <span key="no" className="bad">{found.degraded}</span>],
                    ["database", <code key="database">{found.database}</code>],
                  ]}
                />
              )}
            </Answered>
            {diagnostics.data && (
              <Facts
                facts={[
                  ["size", bytes(diagnostics.data.database.bytes)],
                  ["disk free", diagnostics.data.disk.freeBytes === null ? "not known" : bytes(diagnostics.data.disk.freeBytes)],
                  ["open runs", diagnostics.data.openRuns],
                  ["at work", diagnostics.data.liveAttempts],
                  ["workers", diagnostics.data.containment],
                  ["log", <code key="log">{diagnostics.data.log}</code>],
                  ["socket", <code key="socket">{diagnostics.data.socket}</code>],
                  ["address", diagnostics.data.httpUrl],
                ]}
              />
            )}
          </Panel>
          <Browsers />
          <Panel title="From a shell">
            <div className="body">
              <Command text="subagents doctor" />
            </div>
          </Panel>
        </aside>
      </div>
    </>
  );
}

/** What a node does now; of one that starts nothing, why. */
function stateOf(node: ClusterNode) {
  if (!node.alive) return "over";
  if (node.degraded !== null) return <Said text={`starts nothing: ${node.degraded}`} />;
  return node.draining ? "drains" : "at work";
}

/** The cluster: which nodes there are, what each decides about and what runs can ask of it. */
function Nodes() {
  const node = useDiagnostics().data?.node ?? null;
  const cluster = useCluster(node !== null).data;
  if (node === null || cluster === undefined) return null;
  const alive = cluster.nodes.filter((each) => each.alive);
  return (
    <Panel title="Nodes" note={`${alive.length} of ${cluster.nodes.length} at work${cluster.unowned > 0 ? `; ${cluster.unowned} partitions have no node` : ""}`}>
      {cluster.wentBack !== null && <p className="note bad">The database went back in time: {cluster.wentBack}. Runs of its last moments may be missing.</p>}
      <Table
        name="nodes"
        columns={["node", "state", "partitions", "places", "slots", "version"]}
        rows={cluster.nodes.map((each) => [
          <>
            <Said text={each.name} />
            {each.isSelf && <span className="note"> this one</span>}
          </>,
          <span className={each.alive && each.degraded === null ? "" : "bad"}>{stateOf(each)}</span>,
          each.partitions,
          <Said text={each.labels.join(", ") || "none"} />,
          each.slots ?? "no limit",
          each.version,
        ])}
      />
    </Panel>
  );
}

/** Slots that are taken and who waits for them; providers that refuse for now. */
function Lanes() {
  const agents = useAgents().data?.agents ?? [];
  const waiting = useWaiting().data?.runs ?? [];
  const busy = useDiagnostics().data?.lanes ?? [];
  const idle = agents.filter((each) => !busy.some((lane) => lane.name === each.limits.lane));
  const lanes = [
    ...busy,
    ...new Map(idle.map(({ limits: { lane, laneSlots } }) => [lane, { name: lane, depth: 1, slots: laneSlots, used: 0, queued: 0 }])).values(),
  ];
  const gates = waiting.filter((run) => run.wait?.kind === "provider");
  return (
    <Panel title="Lanes and gates">
      <Table
        name="lanes and gates"
        columns={["lane", "slots", "taken", "in line"]}
        rows={[
          ...lanes.map((lane) => [
            <>
              {lane.name}
              {lane.depth > 1 && <span className="note"> at depth {lane.depth}</span>}
            </>,
            lane.slots,
            lane.used,
            lane.queued,
          ]),
          ...gates.map((run) => [<span className="you">{run.wait?.name}’s provider refuses</span>, run.wait?.status, <Said text={run.why ?? ""} />, <Ahead at={run.wait?.endsAt} />]),
        ]}
      />
      {gates.length === 0 && <p className="note body">No provider refuses now.</p>}
    </Panel>
  );
}

function Doctor({ found }: { found: Diagnostics }) {
  const problems = [
    ...found.database.problems.map((each) => ["database", each] as const),
    ...found.setAside.map((each) => [each.name, each.reason] as const),
    ...found.orphans.map((each) => [each.attemptId, `process ${each.pid} is nobody’s any more`] as const),
  ];
  return (
    <>
      <Panel title="What doctor says" note={counted(problems.length, "problem")}>
        {problems.length === 0 ? (
          <Empty title="Nothing is damaged, nothing is left over" />
        ) : (
          <Table name="problems" rows={problems.map(([name, text]) => [<code>{name}</code>, <Said text={text} />])} />
        )}
      </Panel>
      <Panel title="Turned away" note={`${found.refusals.lastDay} in 24 hours`} right={<code>{found.refusals.file}</code>}>
        {found.refusals.newest.length === 0 ? (
          <Empty title="Nobody was turned away" />
        ) : (
          <Table
            name="turned away"
            rows={found.refusals.newest.map((each) => [
              <Ago at={each.refusedAt} />,
              <code>{each.call}</code>,
              <Said text={each.reason} />,
              <span className="note">
                {each.by} {each.peer}
              </span>,
            ])}
          />
        )}
      </Panel>
      {found.recoveries.length > 0 && (
        <Panel title="Decided at its start" note={counted(found.recoveries.length, "run")}>
          <Table name="decisions" rows={found.recoveries.map((each) => [<code>{each.runId}</code>, each.phase, each.decision])} />
        </Panel>
      )}
    </>
  );
}

function Configuration() {
  const config = useConfig();
  const [isOpen, setOpen] = useState(false);
  return (
    <Panel title="Configuration" note="changed in the files, shown with its origin">
      <Answered query={config}>
        {(found) => (
          <>
            {found.warnings.length > 0 && <p className="body you">{found.warnings.join("; ")}</p>}
            <details onToggle={(event) => setOpen(event.currentTarget.open)}>
              <summary className="body">
                {counted(found.values.length, "setting")} from {found.files.join(", ") || "the defaults"}
              </summary>
              {isOpen && <Table name="settings" rows={found.values.map((each) => [<code>{each.key}</code>, <Said text={JSON.stringify(each.value)} mono />, <span className="note">{each.origin}</span>])} />}
            </details>
          </>
        )}
      </Answered>
    </Panel>
  );
}

/** Where else people hear of runs: when something got through last, and a button that tries it. */
function Channels({ channels }: { channels: readonly ChannelState[] }) {
  const [tried, setTried] = useState<Readonly<Record<string, string>>>({});
  const test = async (to: string) => {
    const put = (text: string) => setTried((before) => ({ ...before, [to]: text }));
    put("sending …");
    try {
      const { problem } = await post<ChannelState>(`/v1/notifications/${encodeURIComponent(nameOf(to))}/test`);
      put(problem === null ? "the test was taken: look there" : `the test was not taken: ${problem}`);
    } catch (error) {
      put(`the test was not sent: ${reason(error)}`);
    }
  };
  return (
    <Panel title="Notifications" note={counted(channels.length, "channel")}>
      {channels.length === 0 ? (
        <Empty title="Nobody is told of runs">
          <p>Your desktop, your phone, a chat: name it in subagents.toml, then start the daemon again.</p>
          <Command text={'[notifications.desk]\nurl = "desktop"'} />
        </Empty>
      ) : (
        <ul className="body links">
          {channels.map(({ to, sent, refused, lastSentAt, problem }) => (
            <li key={to}>
              <Said text={to} />{" "}
              <span className="note">
                {lastSentAt === null ? "nothing sent since the daemon began" : <>last <Ago at={lastSentAt} />, {sent} in all</>}
                {refused > 0 && `, ${refused} refused`}
              </span>{" "}
              {isTried(to) && <Act className="plain" disabled={tried[to] === "sending …"} onClick={() => void test(to)}>Send a test</Act>}
              {problem !== null && <p className="bad"><Said text={`Nothing gets through: ${problem}`} /></p>}
              {tried[to] !== undefined && <p className="note" role="status"><Said text={tried[to]} /></p>}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** `phone` of `phone (ntfy)`; a room of a chat has its address alone, and no test here. */
const nameOf = (to: string) => to.replace(/ \([^)]*\)$/, "");
const isTried = (to: string) => nameOf(to) !== to;

/** How long a reader may look; the first is for a browser on this machine. */
const HOLDS = [["", "opened within a minute"], ["1h", "for an hour"], ["24h", "for a day"], ["7d", "for a week"]] as const;

/** An address that logs one more browser in, once, to look and change nothing. */
function ReaderLink({ hasLinks }: { hasLinks: boolean }) {
  const [made, setMade] = useState<LoginCode | null>(null);
  const [validFor, setValidFor] = useState("");
  const make = async () => {
    try {
      setMade(await post<LoginCode>("/v1/login/codes", { role: "viewer", validFor: validFor || null }));
      refresh();
    } catch (error) {
      toldFailed("No link was made", reason(error));
    }
  };
  return (
    <div className="body">
      {hasLinks ? <Choice name="how long a reader may look" value={validFor} options={HOLDS} onChoose={setValidFor} />
        : <p className="note">For a browser of this machine, within a minute. Links for others are off: <code>[web] links = true</code></p>}{" "}
      <Act onClick={() => void make()}>Make a link for a reader</Act>
      {made !== null && (
        <>
          <Command text={made.url} />
          <p className="note" role="status">
            It opens one browser, once: {made.loginId === null || made.url?.startsWith("http:") ? "on this machine or through a tunnel" : "on any machine"},{" "}
            {made.loginId === null && <>until <Clock at={made.expiresAt} /></>}{made.loginId !== null && <>and is over <Ahead at={made.expiresAt} /></>}. Who
            opens it sees runs, and changes nothing. You end it here.
          </p>
        </>
      )}
    </div>
  );
}

const refresh = () => void queries.invalidateQueries({ queryKey: ["still", "/v1/logins"] });

/** Browsers that are logged in, and links for others; each of them can be ended. */
function Browsers() {
  const logins = useLogins();
  const own = useStore(role);
  const revoke = async (path: string) => {
    try {
      await request("DELETE", path);
      toldDone("Logged out");
    } catch (error) {
      toldFailed("It was not logged out", reason(error));
    }
    refresh();
  };
  if (logins.data === undefined) return null;
  return (
    <Panel title="Browsers" note={`${logins.data.logins.filter((each) => each.isOpened).length} logged in; this one as ${own}`}>
      <ul className="body links">
        {logins.data.logins.map((each) => (
          <li key={each.loginId}>
            {each.isOpened ? <Said text={each.browser.slice(0, 120)} /> : "A link that nobody opened yet"}{" "}
            <span className="note">
              {each.role}
              {each.isOpened && <>, used <Ago at={each.usedAt} /></>}
              {each.isLink && <>, over <Ahead at={each.endsAt} /></>}
              {each.isOwn && ", this one"}
            </span>{" "}
            <button type="button" className="plain" onClick={() => void revoke(each.isOwn ? "/v1/login" : `/v1/logins/${each.loginId}`)}>
              {each.isOpened ? "Log out" : "Revoke"}
            </button>
          </li>
        ))}
      </ul>
      <ReaderLink hasLinks={logins.data.hasLinks ?? false} />
    </Panel>
  );
}
