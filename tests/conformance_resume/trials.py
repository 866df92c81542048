"""The trials: each property under SIGKILL of daemons at drawn instants, and what came of it."""

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from tests.conformance_resume.service import (
    TOLD,
    Document,
    Node,
    Refused,
    Service,
    Unreachable,
    until,
)
from tests.conformance_resume.verdicts import (
    Ack,
    Checkpoint,
    Effects,
    Finding,
    Fork,
    Handed,
    Lines,
    Offer,
    Readings,
    Recovery,
    Row,
    Says,
    Seen,
    Talks,
    Turn,
    judge_checkpoints,
    judge_forks,
    judge_handed,
    judge_lines,
    judge_outside,
    judge_readings,
    judge_recoveries,
    judge_starts,
    judge_talks,
)

WITHIN_S: Final = 0.8
"""A kill comes so long after what it is to interrupt at most."""
WRITERS: Final = 3
READERS: Final = 3
BATCH: Final = 4
OUTSIDE: Final = 5
"""Workers that are killed with their own work done."""

# The words of a task that tells where it is, what it began from, and that it did something.
STEPS: Final = (
    "n=0; until [ -e stop ]; do n=$((n+1)); echo $n >> steps-$SUBAGENTS_RUN_ID; echo step $n;"
    " sleep 0.05; done"
)
BEGAN: Final = 'echo "start {key} $SUBAGENTS_ATTEMPT" >> $LEDGER'
BEGINNING: Final = (
    'echo "begin $SUBAGENTS_RUN_ID $( (pwd; cat "$SUBAGENTS_TASK_FILE"; env | grep -v ^SUBAGENTS_ |'
    ' sort; stat -c %Y origin) | sha256sum | cut -c1-16)" >> $LEDGER; echo from {key}'
)
OUTSIDE_TASK: Final = (
    'echo "outside {key}" >> $LEDGER; [ "$SUBAGENTS_ATTEMPT_NUMBER" = 1 ] || exit 0; kill -9 $$'
)


def row(
    name: str,
    tried: str,
    service: Service,
    found: Finding,
    *,
    kills: int | None = None,
    expected: Says = Says.HOLDS,
) -> Row:
    says = Says.DOES_NOT if found.wrong else Says.HOLDS
    # What the page says does not hold was shown, and is nothing that must not have happened.
    is_shown = says is Says.DOES_NOT and expected is Says.DOES_NOT
    return Row(
        name,
        tried,
        found.trials,
        service.kills if kills is None else kills,
        says,
        "; ".join([found.evidence, *found.wrong]) if is_shown else found.evidence,
        () if is_shown else found.wrong,
        expected,
    )


# -- 1. prefix continuation ------------------------------------------------------------------------


def prefix_continuation(service: Service, kills: int) -> list[Row]:
    """Workers that write, and a conversation that goes on, while daemons are killed."""
    lines, talks = Lines(), Talks()
    runs = [service.spawn(STEPS, key=f"write-{n}") for n in range(WRITERS)]
    talk = service.spawn("say <talk-0>", key="talk-0", agentId="talker", label="talk")
    sent = ["talk-0"]

    def look(*of: str) -> None:
        for run in of:
            lines.looks[f"journal of {run}"].append(service.journal(run))
            lines.looks[f"transcript of {run}"].append(service.transcript(run))

    while service.kills < kills:
        watched = service.chance.choice(runs)
        look(watched, talk)
        service.strike(WITHIN_S)
        look(watched, talk)
        service.ended(talk)
        look(talk)
        word = f"talk-{len(sent)}"
        body = {"message": f"say <{word}>", "idempotencyKey": word}
        talk = str(service.ask("POST", f"/v1/runs/{talk}/send", body)["runId"])
        sent.append(word)
    for node in service.nodes:
        (node.work / "stop").touch()
    service.finish(*runs, talk)
    look(*runs, talk)
    for run in runs:
        [steps] = [each for node in service.nodes for each in node.work.glob(f"steps-{run}")]
        lines.done[run] = [int(each) for each in steps.read_text("utf-8").split()]
        told = [str(each[2]) for each in lines.looks[f"transcript of {run}"][-1]]
        lines.printed[run] = [int(each.split()[1]) for each in told if re.match(r"step \d", each)]
    talks.turns, talks.sent = turns_of(service), [sent]
    name = "prefix continuation"
    return [
        row(name, "journal, transcript and work of a run", service, judge_lines(lines)),
        row(name, "a session that is continued", service, judge_talks(talks)),
    ]


def turns_of(service: Service) -> list[Turn]:
    return [Turn(*each[:4]) for each in service.wrote("turn")]


# -- 2. effects exactly once -----------------------------------------------------------------------


class _Effects:
    """One of each effect at a time, under a key of its own."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.spawns, self.children = Effects(), Effects()
        self.runs: list[str] = []
        self.told: list[str] = []

    def spawn(self, key: str) -> None:
        for _ in range(2):  # and once more, as a caller does that was not answered
            task = f"{BEGAN.format(key=key)}; sleep 0.3; echo {key}"
            run = self._service.spawn(task, key=key)
            self.spawns.acknowledged[key].append(run)
        self.runs.append(run)

    def spawn_below(self, key: str) -> None:
        child = f"{BEGAN.format(key=key)}; echo {key}"
        asked = f"subagents spawn --agent sh --idempotency-key {key} '{child}'"
        task = (
            f"n=0; while [ $n -lt 2 ]; do if id=$({asked}); then n=$((n+1));"
            f' echo "below {key} $id" >> $LEDGER; else sleep 0.2; fi; done'
        )
        self.runs.append(self._service.spawn(task, key=f"parent-{key}"))

    def notify(self, key: str) -> None:
        task = f'subagents notify "{key}"; echo "said {key} $?" >> $LEDGER'
        self.runs.append(self._service.spawn(task, key=f"notify-{key}"))

    def deliver(self, key: str) -> None:
        run = self._service.spawn(f"echo {key}", key=f"deliver-{key}", session=TOLD)
        self.told.append(run)

    def started(self) -> None:
        """Note which attempts began, and what workers were answered."""
        for key, attempt in self._service.wrote("start"):
            of = self.spawns if key in self.spawns.acknowledged else self.children
            of.began[key].append(attempt)
        for key, run in self._service.wrote("below"):
            self.children.acknowledged[key].append(run)

    def notices(self) -> Handed:
        said = self._service.wrote("said")
        notes = [
            each for each in inbox(self._service, self._service.session) if each["kind"] == "notice"
        ]
        return Handed(
            [key for key, _ in said],
            {key for key, status in said if status != "0"},
            [(str(each["text"]).rpartition("💬")[2].strip(' "'), each["id"]) for each in notes],
        )

    def deliveries(self) -> Handed:
        return Handed(self.told, set(), [(run, id_) for id_, run in self._service.wrote("deliver")])


def effects_once(service: Service, kills: int) -> list[Row]:
    """Spawns, children, messages and deliveries, each round with a kill among them."""
    made = _Effects(service)
    kinds = {
        "spawn": made.spawn,
        "child": made.spawn_below,
        "notice": made.notify,
        "delivery": made.deliver,
    }
    with ThreadPoolExecutor(len(kinds)) as pool:
        while service.kills < kills:
            number = service.kills
            under_way = [pool.submit(do, f"{name}-{number}") for name, do in kinds.items()]
            service.strike(2 * WITHIN_S)
            for each in under_way:
                each.result()
    service.finish(*made.runs, *made.told)
    made.started()
    told = judge_handed(made.notices(), repeats_max=0)
    delivered = judge_handed(made.deliveries(), repeats_max=service.kills)
    return [
        row(EFFECTS, "start of a worker, spawned under a key", service, judge_starts(made.spawns)),
        row(
            EFFECTS, "child that a worker spawns under a key", service, judge_starts(made.children)
        ),
        row(EFFECTS, "message of a worker", service, told),
        row(EFFECTS, "delivery to a courier, by its id", service, delivered),
        outside(service),
    ]


EFFECTS: Final = "effects exactly once"


def outside(service: Service) -> Row:
    """Workers that do something outside of the service, are killed, and are tried again."""
    keys = [f"outside-{number}" for number in range(OUTSIDE)]
    task = OUTSIDE_TASK
    runs = [
        service.spawn(task.format(key=key), key=key, retryCount=1, retryDelay=10) for key in keys
    ]
    service.finish(*runs)
    done = {key: sum(each == [key] for each in service.wrote("outside")) for key in keys}
    tried = "a worker's own effect, killed and retried"
    return row(
        EFFECTS, tried, service, judge_outside(done), kills=len(keys), expected=Says.DOES_NOT
    )


def inbox(service: Service, session: str) -> list[Document]:
    found = service.ask("GET", "/v1/inbox", session=session, all=1, limit=1000)
    return [*found["messages"]]


# -- 3. fork determinism ---------------------------------------------------------------------------


def fork_determinism(service: Service, kills: int) -> list[Row]:
    """Ended runs that are started again twice, and ended sessions that are gone on with twice."""
    forks: list[Fork] = []
    talks = Talks()
    for node in service.nodes:
        (node.work / "origin").touch()
    with ThreadPoolExecutor(2) as pool:
        while service.kills < kills:
            number = len(forks)
            key, word = f"fork-{number}", f"fork-talk-{number}"
            origin = service.spawn(BEGINNING.format(key=key), key=key)
            talk = service.spawn(f"say <{word}>", key=word, agentId="talker")
            service.finish(origin, talk)
            fork = Fork()
            before = [known(service, each) for each in (origin, talk)]

            def again(of: str) -> None:
                # It has no key: where nobody answered, whether it was done shows in the list.
                with suppress(Unreachable):
                    service.once("POST", f"/v1/runs/{of}/retry")

            def say(of: str, what: str) -> str:
                body = {"message": f"say <{what}>", "idempotencyKey": what}
                return str(service.ask("POST", f"/v1/runs/{of}/send", body)["runId"])

            retries = [pool.submit(again, origin) for _ in range(2)]
            service.strike(WITHIN_S / 2)
            for each in retries:
                each.result()
            while len(found := retries_of(service, origin)) < 2:
                again(origin)
            both = [pool.submit(say, talk, f"{word}-{side}") for side in ("left", "right")]
            service.strike(WITHIN_S / 2)
            service.finish(*found, *(each.result() for each in both))
            talks.sent.append([word, f"{word}-left", f"{word}-right"])
            saw = dict(service.wrote("begin"))
            for was, run in zip(before, (origin, talk), strict=True):
                now = known(service, run)
                fork.written += zip(was[:2], now[:2], strict=True)
                fork.known.append((was[2], now[2]))
            fork.beginnings = {
                each: [beginning(service, each), saw.get(each)] for each in (origin, *found)
            }
            forks.append(fork)
    talks.turns = turns_of(service)
    name = "fork determinism"
    linear = judge_talks(talks, in_order=False)
    return [
        row(name, "an ended run, retried twice at once", service, judge_forks(forks)),
        Row(
            name,
            "an ended session, continued twice at once",
            len(talks.sent),
            service.kills,
            Says.DOES_NOT if linear.wrong else Says.NOT_APPLICABLE,
            f"a session has one line: {linear.evidence}",
            linear.wrong,
            Says.NOT_APPLICABLE,
        ),
    ]


def known(service: Service, run: str) -> tuple[Seen, Seen, object]:
    """What an ended run is: its journal, its transcript, how it ended and with what."""
    shown = service.ask("GET", f"/v1/runs/{run}/result")
    told = [shown[name] for name in ("outcome", "result", "verification", "usage")]
    return service.journal(run), service.transcript(run), told


def retries_of(service: Service, origin: str) -> list[str]:
    rows = service.ask("GET", "/v1/runs", limit=500)["runs"]
    return [str(each["runId"]) for each in rows if each["retryFrom"] == origin]


def beginning(service: Service, run: str) -> Document:
    """The parameters that a run was spawned with, without what makes it this one."""
    data: Document = service.journal(run)[0][3]
    given = {**data["spec"]}
    given.pop("idempotencyKey", None)
    given.pop("label", None)
    return {"spec": given, "resolved": {**data["resolved"], "label": None}}


# -- 4. checkpoint validity ------------------------------------------------------------------------


def checkpoint_validity(service: Service, kills: int) -> list[Row]:
    """Copies that are gone on with elsewhere; in a cluster, what the other nodes take over."""
    name = "checkpoint validity"
    if service.is_cluster:
        found = [taken_over(service, number) for number in range(kills)]
        tried = "what a lost node had committed, on the others"
        return [row(name, tried, service, judge_checkpoints(found))]
    backups: list[Checkpoint] = []
    torn: list[Checkpoint] = []
    struck = 0
    while service.kills + struck < kills:
        for into, is_backup in ((backups, True), (torn, False)):
            into.append(copied(service, len(into), is_backup=is_backup))
            struck += 1
    return [
        row(
            name,
            "`db backup` at any instant, then `db restore`",
            service,
            judge_checkpoints(backups),
            kills=len(backups),
        ),
        row(
            name,
            "the database of a killed daemon, copied",
            service,
            judge_checkpoints(torn),
            kills=2 * len(torn),
        ),
    ]


def batch(service: Service, name: str) -> list[str]:
    """Some runs that end at once, soon and later."""
    return [
        service.spawn(f"sleep {n * n * 0.15}; echo {name} {n}", key=f"{name}-{n}")
        for n in range(BATCH)
    ]


def ends(service: Service, runs: Sequence[str]) -> dict[str, object]:
    """How and with what those of them that ended did."""
    found = {run: service.ask("GET", f"/v1/runs/{run}/result") for run in runs}
    return {
        run: [each["outcome"], each["result"]] for run, each in found.items() if each["outcome"]
    }


def copied(service: Service, number: int, *, is_backup: bool) -> Checkpoint:
    """A copy that is taken among runs at work, and gone on with in another home."""
    [node] = service.nodes
    name = f"{'backup' if is_backup else 'torn'}-{number}"
    runs = batch(service, name)
    time.sleep(service.chance.uniform(0.0, WITHIN_S))
    found = Checkpoint(told={each: service.journal(each) for each in runs})
    found.ended_before = ends(service, runs)
    place = service.root / name
    other = Node(node.program, place, place / "ledger")
    service_there = Service([other], place, service.chance)
    try:
        if is_backup:
            file = place / "backup.db"
            node.command("db", "backup", str(file))
            other.command("db", "restore", str(file), "--yes")
        else:
            node.kill()
            service.kills += 1
            other.database.parent.mkdir(parents=True, exist_ok=True)
            for each in node.database.parent.glob(f"{node.database.name}*"):
                shutil.copy(each, other.database.parent)
            node.start()
        other.start()
        service_there.strike(WITHIN_S / 2)
        service_there.finish(*runs, service_there.spawn("echo more", key="more"))
        other.command("db", "check")
        found.ended = ends(service_there, runs)
        found.resumed = {each: service_there.journal(each) for each in runs}
    except (Refused, TimeoutError) as error:
        found.trouble = str(error)
    finally:
        service_there.clean_up()
    service.finish(*runs)
    found.whole = {each: service.journal(each) for each in runs}
    return found


def taken_over(service: Service, number: int) -> Checkpoint:
    """A node is lost with all of its workers, and the others go on from what is committed."""
    runs = batch(service, f"taken-{number}")
    time.sleep(service.chance.uniform(0.0, WITHIN_S))
    found = Checkpoint(told={each: service.journal(each) for each in runs})
    found.ended_before = ends(service, runs)
    try:
        service.strike_machine(0.1)
        service.finish(*runs, service.spawn("echo more", key=f"more-{number}"))
    except TimeoutError as error:
        found.trouble = str(error)
    found.ended = ends(service, runs)
    found.whole = found.resumed = {each: service.journal(each) for each in runs}
    return found


# -- 5. consume once -------------------------------------------------------------------------------


def consume_once(service: Service, kills: int) -> list[Row]:
    """Readers of one session that race for the results, while daemons are killed."""
    record = Readings()
    is_over = threading.Event()

    def read(reader: str) -> None:
        while not is_over.is_set():
            asked_s = time.monotonic()
            try:
                found = service.once("POST", "/v1/inbox", {"limit": 3}, reader=reader)["messages"]
            except Unreachable:
                time.sleep(0.05)
                continue
            at_s = time.monotonic()
            for each in found:
                offer = Offer(reader, each["id"], each["runId"], asked_s, at_s)
                record.offers.append(offer)
            for each in found:
                time.sleep(0.15)
                record.acks.append(acknowledge(service, reader, each["id"]))
            time.sleep(0.0 if found else 0.05)

    readers = [threading.Thread(target=read, args=(f"reader-{n}",)) for n in range(READERS)]
    for each in readers:
        each.start()
    try:
        while service.kills < kills:
            name = f"read-{service.kills}"
            for n in range(BATCH):
                run = service.spawn(f"sleep 0.{n}; echo {name}", key=f"{name}-{n}")
                record.runs.append(run)
            service.strike(WITHIN_S, noted=record.kills_s)
        service.finish(*record.runs)
        # One that a killed node's reader held is offered again when its lease is over.
        with suppress(TimeoutError):
            until(lambda: not unread(service), what="the end of the inbox", within_s=90)
        record.unread = unread(service)
    finally:
        is_over.set()
        for each in readers:
            each.join()
    tried = f"{READERS} readers of one inbox"
    return [row("consume once", tried, service, judge_readings(record))]


def acknowledge(service: Service, reader: str, message: str) -> Ack:
    """Acknowledge one message, however often that must be said."""
    tries = 0

    def said() -> Document | None:
        nonlocal tries
        tries += 1
        with suppress(Unreachable):
            return service.once("POST", "/v1/inbox/ack", {"messageIds": [message]}, reader=reader)
        return None

    found = until(said, what=f"an answer to the acknowledgement of {message}")
    return Ack(reader, message, found["consumed"], tries > 1, time.monotonic())


def unread(service: Service) -> list[str]:
    found = service.ask("GET", "/v1/inbox", limit=1000)["messages"]
    return [str(each["id"]) for each in found]


# -- 6. recovery determinism -----------------------------------------------------------------------


def recovery_determinism(service: Service, kills: int) -> list[Row]:
    """The same files recovered in two places; in a cluster, the same database read by each node."""
    name = "recovery determinism"
    found: list[Recovery] = []
    if service.is_cluster:
        while service.kills < kills:
            runs = varied(service, len(found))
            service.strike(WITHIN_S)
            service.finish(*runs)
            recovery = Recovery()
            for node in service.nodes:
                alone = Service([node], service.root, service.chance)
                note(recovery, node.root.name, alone, runs, service.session)
            found.append(recovery)
        return [row(name, "one database, read by each node", service, judge_recoveries(found))]
    [node] = service.nodes
    struck = 0
    while service.kills + struck < kills:
        runs = varied(service, len(found))
        time.sleep(service.chance.uniform(0.0, WITHIN_S))
        node.kill()
        service.kills += 1
        # What is at work ends by itself, and nobody is there to see it.
        until(lambda: not node.processes(), what="the end of the workers")
        recovery = Recovery()
        for side in ("left", "right"):
            place = service.root / f"{side}-{len(found)}"
            shutil.copytree(node.root, place / "n1", ignore=_sockets, symlinks=True)
            there = Node(node.program, place / "n1", place / "ledger")
            elsewhere = Service([there], place, service.chance)
            try:
                there.start()
                elsewhere.strike(WITHIN_S / 2)
                struck += 1
                elsewhere.finish(*runs)
                note(recovery, side, elsewhere, runs, service.session)
            finally:
                elsewhere.clean_up()
        found.append(recovery)
        node.start()
        service.finish(*runs)
    tried = "one journal, recovered in two places"
    return [
        row(name, tried, service, judge_recoveries(found), kills=service.kills + struck),
    ]


def _sockets(directory: str, names: list[str]) -> list[str]:
    del directory
    return [each for each in names if each.endswith((".sock", ".lock"))]


def varied(service: Service, number: int) -> list[str]:
    """Runs that end in different ways: well, badly, again, verified or not, handed to a courier.

    What waits when the daemon is killed starts in each copy, in the same directory: a file counts
    as made there because its content is another one each time.
    """
    name = f"vary-{number}"
    contract = {"artifacts": [{"path": f"{name}.txt", "minBytes": 2}]}
    return [
        service.spawn("sleep 0.3; echo well", key=f"{name}-ok"),
        service.spawn("echo badly >&2; sleep 0.2; exit 3", key=f"{name}-bad"),
        service.spawn("exit 4", key=f"{name}-again", retryCount=1, retryDelay=300),
        service.spawn(f"echo made $$ > {name}.txt", key=f"{name}-met", verification=contract),
        service.spawn("echo no", key=f"{name}-unmet", verification=contract | {"fresh": False}),
        service.spawn("sleep 0.1; echo told", key=f"{name}-told", session=TOLD),
    ]


def note(
    recovery: Recovery, place: str, service: Service, runs: Sequence[str], session: str
) -> None:
    """What each run is there, and what was handed over or lies in an inbox."""
    states: dict[str, object] = {}
    for run in runs:
        shown = service.ask("GET", f"/v1/runs/{run}")
        result = service.ask("GET", f"/v1/runs/{run}/result")
        told = {name: shown[name] for name in ("phase", "outcome", "state", "attempt", "label")}
        checked = (result["verification"] or {}).get("status")
        states[run] = json.dumps({**told, "result": result["result"], "checked": checked})
    recovery.states[place] = states
    messages = [each for of in (session, TOLD) for each in inbox(service, of)]
    recovery.outbox[place] = {
        f"{each['id']} ({each['kind']}, {each['status']})"
        for each in messages
        if each["runId"] in runs
    } | {f"delivery {id_}" for id_, run in service.wrote("deliver") if run in runs}


TRIALS: Final[dict[str, Callable[[Service, int], list[Row]]]] = {
    "prefix": prefix_continuation,
    "effects": effects_once,
    "fork": fork_determinism,
    "checkpoint": checkpoint_validity,
    "consume": consume_once,
    "recovery": recovery_determinism,
}
