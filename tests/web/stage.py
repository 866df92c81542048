"""A day at a small shop, played on a real daemon: what pictures of the page show.

The workers are real processes that do what the test says: each reads lines from a pipe of its own
and prints them, until it is told to exit. The clock is the test's, too (``staged_daemon``).
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

from tests.e2e.live_home import LiveHome, live_home, until
from tests.web.staged_daemon import CLOCK

from subagents.domain.run.events import SignalReceived

ROOT: Final = Path(__file__).parents[2]
TODAY: Final = datetime(2026, 1, 14, tzinfo=UTC)
NOW: Final = "09:46:30"
"""When the pictures are taken."""
SHOP: Final = "/home/ada/shop"
"""Where it seems to be in pictures."""
RELEASE: Final = "agent:main:release"
BILLING: Final = "agent:main:billing"
NIGHTLY: Final = "agent:main:nightly"

_WORKER: Final = r"""
mkfifo "$STAGE/$SUBAGENTS_ATTEMPT" && exec 3<>"$STAGE/$SUBAGENTS_ATTEMPT"
while IFS= read -r line <&3; do
  case $line in "exit "*) exit "${line#exit }";; *) printf '%s\n' "$line";; esac
done
"""


class Agent(NamedTuple):
    name: str
    about: str
    tags: tuple[str, ...]
    lane: str | None = None


AGENTS: Final = (
    Agent("coder", "writes and changes code", ("code", "refactoring")),
    Agent("reviewer", "reads changes and says what is wrong", ("review", "security")),
    Agent("tester", "runs tests and finds out why they fail", ("tests",)),
    Agent("writer", "writes and translates what customers read", ("docs", "translation")),
    Agent("browser", "looks at pages in a browser", ("screenshots",), "browser"),
)


def config(port: int) -> str:
    """The shop's ``subagents.toml``."""
    return "\n".join(
        (
            f"[daemon]\nhttp_port = {port}",
            "[agents.defaults.subagents]\nmax_children_per_agent = 1000\nmax_concurrent = 16",
            "archive_after_minutes = 525600",
            "[lanes.browser]\nslots = 1",
            "[budgets.daily]\nmax_cost_usd = 25",
            *(
                f"[agents.{each.name}]\nruntime = 'command'\n"
                f"command = ['sh', '-c', '''{_WORKER}''']\n"
                f"description = '{each.about}'\ncapabilities.tags = {json.dumps(each.tags)}\n"
                + (f"lane = '{each.lane}'\n" if each.lane else "")
                + "pass_env = ['STAGE']\ngrace_seconds = 1"
                for each in AGENTS
            ),
        )
    )


class Stage:
    """The shop's daemon, its clock, and the lines of its workers."""

    def __init__(self, home: LiveHome, clock: Path, pipes: Path) -> None:
        self.home = home
        self._clock = clock
        self._pipes = pipes
        self._tools: set[tuple[str, str]] = set()
        self._given: Counter[str] = Counter()

    def at(self, time: str, *, day: int = 0) -> datetime:
        """Set the clock: ``09:41:05`` of today, or so many days from it."""
        hours, minutes, seconds = (int(each) for each in time.split(":"))
        moment = TODAY + timedelta(days=day, hours=hours, minutes=minutes, seconds=seconds)
        draft = self._clock.with_suffix(".new")
        draft.write_text(str(round(moment.timestamp() * 1000)), "ascii")
        draft.replace(self._clock)
        return moment

    def spawn(self, agent: str, label: str, task: str, *, session: str = "", **spec: Any) -> str:
        """A new run; of an own session when it is named."""
        return str(self.post("/v1/runs", self._spec(agent, label, task, spec), session)["runId"])

    def _spec(self, agent: str, label: str, task: str, spec: Mapping[str, Any]) -> object:
        return self.home.spawn_body(task, agent=agent, label=label, **spec)

    def post(self, path: str, body: object = None, session: str = "") -> dict[str, Any]:
        client = self.home.client(**({"session": session} if session else {}))
        return client.post(path, body, timeout_s=60)

    def says(self, run: str, *lines: str) -> None:
        """Let its worker print these, and wait until what is for readers is in its transcript."""
        self._tell(run, *lines)
        self._given[run] += sum(self._is_signal(run, line) for line in lines)
        words = [each for each in map(_in_transcript, lines) if each is not None]
        if words:
            until(lambda: self._has(run, words[-1]), what=f"{run} said {words[-1]}")

    def settle(self, *runs: str) -> None:
        """Wait until their journals have what they gave, which takes a second; an end does, too."""
        for run in runs:
            until(partial(self._has_given, run), what=f"what {run} gave")

    def _has(self, run: str, words: str) -> bool:
        lines = self.home.get(f"/v1/runs/{run}/log", tail=3)["lines"]
        return any(words in each["text"] for each in lines)

    def _has_given(self, run: str) -> bool:
        return len(self.home.events(run, SignalReceived)) >= self._given[run]

    def _is_signal(self, run: str, line: str) -> bool:
        """Whether the run's journal will have it: of a tool, its first end."""
        given = json.loads(line) if line.startswith("{") else {"subagents": ""}
        if given["subagents"] == "tool" and given["status"] == "ended":
            is_first = (run, given["name"]) not in self._tools
            self._tools.add((run, given["name"]))
            return is_first
        return given["subagents"] in {"usage", "progress", "report", "result"}

    def ends(self, run: str, code: int = 0) -> None:
        """Let its worker exit, and wait until the run has ended."""
        self._tell(run, f"exit {code}")
        assert not self.home.wait(run)["pending"]

    def leaves(self, run: str, code: int, phase: str) -> None:
        """Let its worker exit, and wait for where that leads the run."""
        self._tell(run, f"exit {code}")
        self.home.until_phase(run, phase)

    def _tell(self, run: str, *lines: str) -> None:
        pipe = self._pipes / f"{run}#1"
        until(lambda: pipe.is_fifo() and self._opened(pipe), what=f"the worker of {run}")
        with pipe.open("w", encoding="utf-8") as worker:
            worker.writelines(f"{each}\n" for each in lines)

    @staticmethod
    def _opened(pipe: Path) -> bool:
        """Whether its worker reads: before, what is written would wait, or be lost."""
        try:
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True


@contextmanager
def staged(root: Path, port: int) -> Iterator[Stage]:
    """A daemon with nothing on the stage yet."""
    clock, pipes = root / "clock", root / "pipes"
    pipes.mkdir(parents=True)
    env = {"PYTHONPATH": str(ROOT), CLOCK: str(clock), "STAGE": str(pipes), "TZ": "UTC"}
    with live_home(root, env=env, started=False, module="tests.web.staged_daemon") as home:
        home.paths.config_file.write_text(config(port))
        stage = Stage(home, clock, pipes)
        stage.at("08:00:00", day=-14)
        home.start()
        yield stage


# -- what workers print --------------------------------------------------------------------------


def event(kind: str, **fields: object) -> str:
    return json.dumps({"subagents": kind, **fields})


def text(words: str) -> str:
    return event("text", text=words)


def usage(tokens_in: int, tokens_out: int, cost_usd: float | None = None) -> str:
    cost = {} if cost_usd is None else {"costUsd": cost_usd}
    return event("usage", tokensIn=tokens_in, tokensOut=tokens_out, **cost)


def progress(phase: str, percent: float) -> str:
    return event("progress", phase=phase, percentComplete=percent)


def tool(name: str, command: str, output: str, code: int = 0) -> tuple[str, str]:
    """A tool that began, and ended."""
    tool_id = f"t{crc32(f'{name}{command}{output}'.encode())}"
    return (
        event("tool", name=name, id=tool_id, status="started", input={"command": command}),
        event(
            "tool",
            name=name,
            id=tool_id,
            status="ended",
            output=output,
            exitCode=code,
            isError=code != 0,
            input={"command": command},
        ),
    )


def result(words: str) -> str:
    return event("result", text=words)


def report(summary: str, status: str = "complete", **fields: object) -> str:
    return event("report", summary=summary, status=status, **fields)


def _in_transcript(line: str) -> str | None:
    """What of a line the transcript shows as it is; None = nothing."""
    if not line.startswith("{"):
        return line
    given = json.loads(line)
    match given["subagents"]:
        case "text" | "thinking" | "error":
            return str(given["text"])
        case "tool":
            return str(given["input"]["command"])
        case _:
            return None


# -- the story -----------------------------------------------------------------------------------


class Story(NamedTuple):
    """Runs that pictures are of."""

    asks: str
    failed: str
    works: str
    plan: str
    reviewed: str


_BEFORE: Final = (
    ("coder", "cart-rounding", "Round totals half to even, as the bank does", 1.84, 0),
    ("tester", "nightly-e2e", "Run the end-to-end tests against staging", 0.42, 0),
    ("reviewer", "review-1182", "Review pull request 1182", 0.67, 0),
    ("writer", "faq-returns", "Say in the FAQ how returns work", 0.31, 0),
    ("coder", "drop-jquery", "Replace the last of jQuery", 3.96, 0),
    ("tester", "nightly-e2e", "Run the end-to-end tests against staging", 0.39, 1),
    ("browser", "shots-checkout", "Take pictures of the checkout in three sizes", None, 0),
    ("reviewer", "review-1190", "Review pull request 1190", 0.73, 0),
    ("coder", "csv-export", "Export orders as CSV", 2.51, 1),
    ("coder", "csv-export-2", "Export orders as CSV, streaming", 2.98, 0),
    ("writer", "release-2-3", "Write the notes of release 2.3", 0.44, 0),
    ("tester", "nightly-e2e", "Run the end-to-end tests against staging", 0.41, 0),
    ("reviewer", "audit-deps", "Look for vulnerable dependencies", 0.58, 0),
)
_DAYS: Final = (-13, -12, -12, -9, -8, -8, -7, -6, -5, -5, -2, -1, -1)


def play(stage: Stage) -> Story:
    """Everything up to ``NOW``."""
    _play_days_before(stage)
    reviewed = _play_morning(stage)
    failed = _play_failure(stage)
    plan = _play_release(stage)
    asks = _play_refactoring(stage)
    _play_waiting(stage)
    works = _play_working(stage)
    _play_question(stage, asks)
    stage.at(NOW)
    return Story(asks, failed, works, plan, reviewed)


def _play_days_before(stage: Stage) -> None:
    sessions = (BILLING, NIGHTLY, "agent:main:main")
    for number, (row, day) in enumerate(zip(_BEFORE, _DAYS, strict=True)):
        agent, label, task, cost, code = row
        stage.at(f"{9 + number % 8:02}:{number * 4:02}:00", day=day)
        run = stage.spawn(agent, label, task, session=sessions[number % 3])
        spent = () if cost is None else (usage(round(cost * 21_000), round(cost * 2_900), cost),)
        stage.says(run, *spent, text(f"{task}: looked at it"))
        stage.at(f"{9 + number % 8:02}:{number * 4 + 3:02}:{20 + number}", day=day)
        if code == 0:
            stage.says(run, result(f"{label}: done"))
        stage.ends(run, code)
        stage.post("/v1/inbox/ack", {"messageIds": [f"{run}:announce"]}, sessions[number % 3])


def _play_morning(stage: Stage) -> str:
    stage.at("08:31:00")
    contract = {"artifacts": [{"path": "audit/deps.md", "minBytes": 20}]}
    run = stage.spawn(
        "reviewer", "audit-deps", "Look for vulnerable dependencies; write audit/deps.md",
        verification=contract, tags=["weekly"],
    )  # fmt: skip
    stage.says(
        run,
        text("Reading package-lock.json and pyproject.toml."),
        *tool("Bash", "npm audit --json | jq .metadata", '{"vulnerabilities": {"moderate": 1}}'),
    )
    audit = stage.home.work / "audit"
    audit.mkdir()
    (audit / "deps.md").write_text("# Dependencies\n\nOne moderate advisory: word-wrap 1.2.3.\n")
    stage.at("08:37:40")
    stage.says(
        run,
        usage(41_200, 3_100, 0.58),
        report("One moderate advisory, in word-wrap; the update is compatible."),
        result(
            "One moderate advisory (word-wrap 1.2.3, a slow regular expression). 1.2.4 mends it."
        ),
        text("Wrote audit/deps.md."),
    )
    stage.ends(run)

    stage.at("08:44:10")
    (stage.home.work / "README.de.md").write_text("Schon da.\n")
    vacuous = stage.spawn(
        "writer", "readme-de", "Translate README.md into German: README.de.md",
        verification={"artifacts": [{"path": "README.de.md"}], "fresh": False},
    )  # fmt: skip
    stage.says(vacuous, usage(9_800, 2_200, 0.12), result("Translated."), text("Done."))
    stage.at("08:46:02")
    stage.ends(vacuous)
    return run


def _play_failure(stage: Stage) -> str:
    stage.at("08:52:00")
    run = stage.spawn(
        "coder", "migrate-billing",
        "Write the migrations for invoices with several currencies, apply them to a copy of the"
        " database, and write migrations/report.json: one entry for each table, with its row count"
        " before and after.",
        session=BILLING,
        verification={
            "artifacts": [
                {"path": "migrations/0031_currencies.sql"},
                {"path": "migrations/report.json", "json": True, "minItems": 14},
            ]
        },
        budget={"maxCostUsd": 6},
    )  # fmt: skip
    stage.says(
        run,
        text("Fourteen tables hold amounts. I begin with invoices and invoice_lines."),
        *tool("Bash", "ls migrations | tail -2", "0029_vat.sql\n0030_refunds.sql"),
    )
    migrations = stage.home.work / "migrations"
    migrations.mkdir()
    (migrations / "0031_currencies.sql").write_text("ALTER TABLE invoice ADD currency text;\n")
    stage.at("08:58:30")
    stage.says(
        run,
        *tool("Bash", "psql shop_copy -f migrations/0031_currencies.sql", "ALTER TABLE"),
        usage(188_000, 21_400, 4.37),
        report(
            "All 14 migrations are applied to the copy, and the counts match.", confidence="high"
        ),
        result("All 14 migrations are applied to the copy, and the counts match before and after."),
        text("Finished."),
    )
    (migrations / "report.json").write_text('[{"table": "invoice", "before": 812, "after": 812}]')
    stage.at("09:01:12")
    stage.ends(run)
    return run


_STEPS: Final = (
    ("changelog", "writer", ()),
    ("build", "coder", ()),
    *((f"test-{each}", "tester", ("build",)) for each in (
        "accounts", "cart", "catalog", "checkout", "mail", "search",
    )),
    ("docs", "writer", ("changelog",)),
    ("sign", "coder", ("test-accounts", "test-cart", "test-catalog", "test-checkout",
                       "test-mail", "test-search")),
    ("publish", "coder", ("sign", "docs")),
    ("announce", "writer", ("publish",)),
)  # fmt: skip


def _play_release(stage: Stage) -> str:
    stage.at("09:08:00")
    specs = [
        {
            "task": f"Release 2.4: {label}",
            "label": label,
            "agentId": agent,
            "dependsOn": list(after),
        }
        for label, agent, after in _STEPS
    ]
    body = {"specs": specs, "name": "release-2.4", "cwd": str(stage.home.work)}
    found = stage.post("/v1/plans", body, RELEASE)
    run = dict(zip((each["label"] for each in specs), found["receipts"], strict=True))
    ids = {label: str(each["runId"]) for label, each in run.items()}
    stage.says(ids["changelog"], usage(22_000, 2_900, 0.36), result("31 entries"), text("Done."))
    stage.at("09:11:40")
    stage.ends(ids["changelog"])
    stage.says(ids["build"], usage(15_100, 900, 0.14), result("shop-2.4.0.tar.gz"), text("Built."))
    stage.at("09:15:05")
    stage.ends(ids["build"])
    for minute, label in enumerate(("accounts", "cart", "catalog", "mail")):
        test = ids[f"test-{label}"]
        stage.says(test, usage(8_000, 700, 0.09), result("all pass"), text("All pass."))
        stage.at(f"09:{17 + minute}:20")
        stage.ends(test)
    stage.says(ids["test-checkout"], progress("212 of 340 tests", 62), text("212 of 340 passed"))
    stage.says(ids["test-search"], progress("building the index of the test data", 20))
    stage.says(
        ids["docs"], usage(31_000, 4_800, 0.52), progress("rewriting the page about refunds", 75)
    )
    stage.settle(ids["test-checkout"], ids["test-search"], ids["docs"])
    return str(found["planId"])


def _play_waiting(stage: Stage) -> None:
    stage.at("09:24:00")
    limited = stage.spawn("writer", "faq-french", "Translate the FAQ into French")
    refusal = {"isError": True, "error": "429: rate limited", "isLimit": True}
    stage.says(limited, text("Translating 48 answers."))
    stage.says(limited, event("result", text="", retryAfterMs=1_800_000, **refusal))
    stage.leaves(limited, 1, "retry_wait")
    stage.at("09:25:00")
    stage.spawn("writer", "faq-spanish", "Translate the FAQ into Spanish")
    stage.at("09:26:00")
    retried = stage.spawn(
        "tester", "nightly-e2e", "Run the end-to-end tests against staging", session=NIGHTLY,
        retryCount=3, retryDelay="30m",
    )  # fmt: skip
    stage.says(retried, usage(11_000, 800, 0.13), text("staging answers 502"))
    stage.leaves(retried, 3, "retry_wait")
    stage.at("09:29:00")
    for number, language in enumerate(("de", "fr", "ja")):
        stage.at(f"09:29:{number:02}")
        task = f"Take pictures of the checkout, locale {language}"
        run = stage.spawn("browser", f"shots-{language}", task)
        if number == 0:
            stage.says(run, progress("9 of 14 pages", 64))
            stage.settle(run)
    stage.at("09:30:00")
    paused = stage.spawn("coder", "reindex-search", "Build the search index anew, in batches")
    stage.says(paused, usage(5_400, 300, 0.05), text("Batch 3 of 40."))
    stage.settle(paused)
    stage.at("09:32:10")
    stage.post(f"/v1/runs/{paused}/pause")


def _play_working(stage: Stage) -> str:
    stage.at("09:33:00")
    works = stage.spawn(
        "coder", "import-catalog",
        "Import the supplier's catalogue (11,204 products), with pictures; skip what has no price.",
        session=BILLING, budget={"maxCostUsd": 5},
        verification={"artifacts": [{"path": "catalogue.jsonl", "minBytes": 1000}],
                      "requireCompletionReport": True},
    )  # fmt: skip
    stage.says(
        works,
        text("The feed is XML, 84 MB. I read it as a stream."),
        *tool(
            "Bash", "python import.py --dry-run | tail -1", "11,204 products, 391 without a price"
        ),
        text("391 have no price and are skipped."),
    )
    for minute, command, out in (
        (34, "python import.py --limit 100", "100 products, 112 pictures, 0 errors"),
        (35, "pytest -q tests/test_import.py", "18 passed in 2.41s"),
        (36, "python import.py --resume", "started, 11,204 products to go"),
    ):
        stage.at(f"09:{minute}:20")
        stage.says(works, *tool("Bash", command, out))
    stage.says(works, text("It runs at 14 products a second; I look every two minutes."))
    stage.at("09:38:00")
    flaky = stage.spawn("tester", "flaky-cart", "Find out why tests/test_cart.py fails sometimes")
    stage.says(flaky, text("I run it twenty times."))
    for number in range(3):
        stage.at(f"09:39:{10 + 15 * number}")
        stage.says(
            flaky,
            *tool("Bash", "pytest -q tests/test_cart.py",
                  f"FAILED tests/test_cart.py::test_total_{number}\n1 failed, 40 passed", 1),
            text(f"Still fails ({number + 1})."),
        )  # fmt: skip
    stage.says(flaky, usage(52_000, 3_300, 0.61), progress("run 4 of 20", 20))
    stage.settle(flaky, works)
    stage.at("09:44:00")
    stage.says(
        works,
        usage(131_000, 9_700, 4.12),
        progress("6,947 of 11,204 products", 62),
        text("6,947 products are in; one picture in nine is missing at the supplier's."),
    )
    stage.settle(works)
    texts = stage.spawn("reviewer", "alt-texts", "Write alt texts for the 60 new pictures")
    stage.says(
        texts,
        usage(18_000, 2_700, 0.22),
        report("52 of 60 have one; eight pictures do not open.", "partial"),
        result("52 of 60 alt texts; these do not open: 07, 11, 12, 30, 31, 44, 58, 59."),
        text("Eight do not open."),
    )
    stage.at("09:45:10")
    stage.ends(texts)
    return works


def _play_refactoring(stage: Stage) -> str:
    stage.at("09:22:00")
    run = stage.spawn(
        "coder", "auth-refactor",
        "Move session handling into its own module, without changing what callers see.",
        session=RELEASE,
        verification={"artifacts": [{"path": "src/auth/sessions.py", "minBytes": 200}]},
    )  # fmt: skip
    stage.says(
        run,
        text("I begin with who calls it."),
        *tool("Bash", "grep -rn legacy_token src | wc -l", "3"),
        text("Three callers read the column legacy_token directly."),
    )
    stage.settle(run)
    return run


def _play_question(stage: Stage, run: str) -> None:
    stage.says(run, usage(64_000, 5_200, 0.83), text("I need a decision before I go on."))
    stage.settle(run)
    stage.at("09:45:50")
    stage.post(
        "/v1/requests",
        {
            "runId": run,
            "question": "Drop the column legacy_token, or keep it for one release?",
            "context": "Three callers read it: the mobile app (2.1 and older), the admin page,"
            " and the nightly export.",
            "options": ["Drop it now", "Keep it, and warn", "Keep it silently"],
            "timeoutSeconds": 1800,
            "defaultAnswer": "Keep it, and warn",
        },
    )
