"""Play the first day of a new user, on a machine with nothing but Python and uv.

    python -m scripts.first_day [--only WORD]

Everything happens in a home of its own, which is thrown away. The commands are those that a person
would type after reading `subagents --help`; each is printed with the end of what it said. A table
at the end says how long each job took; exit code 1: something did not come out as it should.

The two jobs that last for hours or days are told so by `faketime`, where that is installed: for
them the machine's clock runs faster, or is set forward; nothing else is changed.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

CHECKOUT: Final = Path(__file__).parents[1]
FIRST_RESULT_S: Final = 20.0
TIMEOUT_S: Final = 180
SHOWN_LINES: Final = 6
FASTER: Final = 600
"""Two hours take twelve seconds."""
PASSED_ON: Final = ("UV_", "PIP_", "SSL_", "http", "HTTP", "no_proxy", "NO_PROXY", "LANG", "TERM")


class Wrong(Exception):
    """It did not come out as it should."""


@dataclass
class User:
    """A home that nobody used before."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {name: each for name, each in os.environ.items() if name.startswith(PASSED_ON)}
        uv = shutil.which("uv")
        if uv is None:
            raise SystemExit("uv is not on the PATH: https://docs.astral.sh/uv/ says how to get it")
        path = [str(self.root / ".local/bin"), str(Path(uv).parent), "/usr/local/bin", "/usr/bin"]
        self.env = {**kept, "HOME": str(self.root), "PATH": os.pathsep.join([*path, "/bin"])}

    def directory(self, name: str) -> Path:
        found = self.root / name
        found.mkdir(parents=True, exist_ok=True)
        return found

    def types(
        self,
        line: str,
        *,
        cwd: Path | None = None,
        code: int | None = 0,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
    ) -> str:
        """Type a line into a shell; what it printed on stdout.

        Raises:
            Wrong: The exit code is not that which it should be.
        """
        print(f"  $ {line}", flush=True)
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=cwd or self.root,
            env={**self.env, **(env or {})},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        said = (done.stdout + done.stderr).strip().splitlines()
        for each in said[-SHOWN_LINES:]:
            print(f"    {each[:160]}", flush=True)
        if code is not None and done.returncode != code:
            raise Wrong(f"{line!r} ended with {done.returncode}, not {code}")
        return done.stdout

    def reads(
        self, line: str, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Any:
        """The JSON document that a command prints; not shown."""
        done = subprocess.run(
            ["bash", "-c", f"{line} --json"],
            cwd=cwd or self.root,
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise Wrong(f"{line!r}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def expect(found: object, wanted: object, what: str) -> None:
    """Raise Wrong unless they are equal."""
    if found != wanted:
        raise Wrong(f"{what}: {found!r}, not {wanted!r}")


# -- the jobs -----------------------------------------------------------------------------------


def install(user: User) -> None:
    """From nothing to the first verified result."""
    began = time.monotonic()
    user.types(f"uv tool install -q {shlex.quote(str(CHECKOUT))}")
    work = user.directory("work")
    user.types("subagents run 'seq 3 > three.txt' --verify three.txt --min-bytes 6", cwd=work)
    took = time.monotonic() - began
    print(f"  first verified result after {took:.1f} s")
    if took > FIRST_RESULT_S:
        raise Wrong(f"{took:.1f} s are more than {FIRST_RESULT_S:.0f}")


TESTS: Final = """
import pathlib
def test_one(): assert 1 + 1 == 2
def test_flaky():
    seen = pathlib.Path("seen")
    was = seen.exists()
    seen.touch()
    assert was or {is_good}
"""


def repositories(user: User) -> None:
    """The tests of three repositories, one of them flaky, one broken: retries and JUnit."""
    for name, is_good in (("good", True), ("flaky", False), ("broken", True)):
        place = user.directory(f"repos/{name}")
        text = TESTS.format(is_good=is_good)
        if name == "broken":
            text += "def test_broken(): assert False\n"
        (place / "test_it.py").write_text(text)
        user.types(
            f"subagents spawn 'uvx -q pytest -q --junitxml=report.xml' --label {name} --retry 1 "
            f"--retry-delay 100ms --verify report.xml --verify-junit --min-tests 2",
            cwd=place,
        )
    user.types("subagents wait good flaky", cwd=user.directory("repos"))
    user.types("subagents wait broken", cwd=user.directory("repos"), code=5)
    rows = user.reads("subagents list --dir repos")["runs"]
    found = {row["label"]: (row["outcome"]["status"], row["attempt"]) for row in rows}
    wanted = {"good": ("ok", 1), "flaky": ("ok", 2), "broken": ("error", 2)}
    expect(found, wanted, "how the three ended")


FAN: Final = """
name: fan
runs:
- label: part
  matrix: {n: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}
  task: echo ${{ matrix.n }} > part-${{ matrix.n }}.txt
- label: all
  depends_on: [part]
  task: cat part-*.txt | wc -l > all.txt; cat all.txt
"""


def fan_out(user: User) -> None:
    """20 runs and one that waits for all of them, twice in a row."""
    work = user.directory("fan")
    (work / "fan.yaml").write_text(FAN)
    for _ in range(2):
        for old in work.glob("*.txt"):
            old.unlink()
        user.types("subagents plan run fan.yaml", cwd=work)
        expect((work / "all.txt").read_text().strip(), "20", "what the last step counted")
    plans = user.reads("subagents plan list --dir .", cwd=work)["plans"]
    expect([(each["status"], each["steps"]) for each in plans], [("ok", 21)] * 2, "both plans")


def two_hours(user: User) -> None:
    """A run that starts after one of two hours, by a daemon whose clock runs 600 times faster."""
    if shutil.which("faketime") is None:
        raise Wrong("faketime is not installed: apt install faketime")
    fast = {"SUBAGENTS_HOME": str(user.root / "fast")}
    prefix = f"faketime -f '+0 x{FASTER}'"
    with served(user, prefix, fast):
        work = user.directory("long")
        line = f"subagents spawn 'sleep {7_200 / FASTER + 1:.0f}; echo slept' --label long"
        user.types(line, cwd=work, env=fast)
        user.types(
            "subagents run 'echo after it' --label next --after long --include-result",
            cwd=work,
            env=fast,
        )
        found = user.reads("subagents show long", env=fast)
        lasted = seconds(found["endedAt"]) - seconds(found["startedAt"])
        print(f"  by its clock the first one lasted {lasted / 3600:.2f} h")
        if lasted < 7200:
            raise Wrong(f"it lasted {lasted:.0f} s")


def virtual_environment(user: User) -> None:
    """A job with the active virtual environment, and variables of the shell."""
    work = user.directory("venv-job")
    user.types("uv venv -q .venv", cwd=work)
    script = "import sys, os; print(sys.prefix, os.environ['STAGE'], os.environ['KEY'])"
    (work / "job.py").write_text(script)
    said = user.types(
        "source .venv/bin/activate; export KEY=k1; "
        "subagents run --env STAGE=test --env KEY -- python job.py",
        cwd=work,
    )
    expect(said.split()[:3], [str(work / ".venv"), "test", "k1"], "what the job saw")


def three_days(user: User) -> None:
    """A detached job is found three days later, read, and its result handed over once."""
    if shutil.which("faketime") is None:
        raise Wrong("faketime is not installed: apt install faketime")
    later = {"SUBAGENTS_HOME": str(user.root / "later")}
    work = user.directory("later-job")
    user.types("subagents spawn 'echo the answer is 42' --label deep-thought", cwd=work, env=later)
    user.types("subagents spawn 'echo unread; exit 3' --label broke", cwd=work, env=later)
    until(
        lambda: not user.reads("subagents list --phase running,spawning,queued", env=later)["runs"]
    )
    user.types("subagents down", env=later)
    prefix = "faketime -f '+3d'"
    with served(user, prefix, later):
        rows = user.reads(f"{prefix} subagents list", env=later)["runs"]
        expect({row["label"] for row in rows}, {"deep-thought", "broke"}, "what is listed")
        said = user.types(f"{prefix} subagents inbox", env=later)
        if "broke" not in said:
            raise Wrong("the failure was not in the inbox")
        again = user.types(f"{prefix} subagents inbox", env=later)
        if "broke" in again:
            raise Wrong("a message was given twice")


def claude_session(user: User) -> None:
    """What a session of Claude Code spawned in a project is seen by the person there."""
    sys.path.insert(0, str(CHECKOUT))
    from tests.e2e.scripted_model import Say, ScriptedModel, Use  # noqa: PLC0415

    work = user.directory("project")
    bundled = user.types(
        "uv run -q --no-project --with claude-agent-sdk python -c "
        "'import claude_agent_sdk as s, pathlib; "
        'print(pathlib.Path(s.__file__).parent / "_bundled" / "claude")\''
    ).strip()
    links = user.directory(".local/bin")
    (links / "claude").unlink(missing_ok=True)
    (links / "claude").symlink_to(bundled)
    spawn = {"task": "echo from claude", "agentId": "sh", "label": "delegated"}
    script = (
        Use("sessions_spawn", spawn),
        Use("sessions_wait", {"timeoutSeconds": 30}),
        Say("delegated and done"),
    )
    user.directory(".config/subagents")
    (user.root / ".config/subagents/subagents.toml").write_text(
        '[agents.sh]\nruntime = "command"\ncommand = ["sh", "-c", "{task}"]\n'
        '[agents.main]\nsubagents.allow_agents = ["*"]\n'
    )
    with ScriptedModel({"delegate": script}) as model:
        env = {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000",
        }
        user.types("subagents mcp install claude --yes", cwd=work, env=env)
        said = user.types(
            "claude -p 'script:delegate' --permission-mode dontAsk --allowedTools mcp__subagents",
            cwd=work,
            env=env,
        )
    expect(said.strip(), "delegated and done", "what Claude Code said")
    shown = user.types("subagents list --tree --dir .", cwd=work)
    if "delegated" not in shown:
        raise Wrong("the run is not in the tree of its directory")


CAP: Final = """
name = "capped"
budget = { max_tokens = 1000 }
[[runs]]
label = "cheap"
task = "echo '{\\"subagents\\":\\"usage\\",\\"tokensIn\\":400,\\"tokensOut\\":100}'"
[[runs]]
label = "dear"
depends_on = ["cheap"]
task = "echo '{\\"subagents\\":\\"usage\\",\\"tokensIn\\":900,\\"tokensOut\\":100}'; sleep 60"
[[runs]]
label = "too-late"
depends_on = ["dear"]
on_dependency_failure = "run"
task = "echo started all the same"
"""


def capped_plan(user: User) -> None:
    """A plan stops at what all of it may use."""
    work = user.directory("capped")
    (work / "capped.toml").write_text(CAP)
    user.types("subagents plan run capped.toml", cwd=work, code=5)
    runs = user.reads("subagents show plan:capped", cwd=work)["runs"]
    found = {row["label"]: row["outcome"] for row in runs}
    expect(found["cheap"]["status"], "ok", "the first step")
    expect([found[each]["reason"] for each in ("dear", "too-late")], ["budget"] * 2, "the others")


def schedule(user: User) -> None:
    """A schedule fires over a kill -9 and over a stop of the daemon."""
    work = user.directory("scheduled")
    user.types("subagents schedule add tick 'every 10s' 'date >> ticks.txt'", cwd=work)
    until(lambda: started(user) >= 1, within_s=30)
    pid = user.reads("subagents version")["daemon"]["pid"]
    print(f"  $ kill -9 {pid}")
    os.kill(pid, signal.SIGKILL)
    user.types("subagents up")
    until(lambda: started(user) >= 2, within_s=30)
    user.types("subagents down")
    user.types("subagents up")
    until(lambda: started(user) >= 3, within_s=30)
    user.types("subagents show schedule:tick")
    times = user.reads("subagents show schedule:tick")["times"]
    expect(len({each["dueAt"] for each in times}), len(times), "times that were decided once")
    user.types("subagents schedule remove tick --yes")


def started(user: User) -> int:
    times = user.reads("subagents show schedule:tick")["times"]
    return sum(each["decision"] == "started" for each in times)


SERVICE: Final = """
from contextlib import asynccontextmanager

from fastapi import FastAPI
from subagents import Orchestrator


@asynccontextmanager
async def lifespan(app):
    async with Orchestrator.connect() as app.state.sub:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/jobs", status_code=202)
async def start(n: int):
    run = await app.state.sub.spawn(f"echo $(({n} * 7))", agent="command")
    return {"id": run.id}


@app.get("/jobs/{run_id}")
async def look(run_id: str):
    found = await (await app.state.sub.get(run_id)).show()
    return {"state": found.phase, "result": found.result}
"""


def web_service(user: User) -> None:
    """A FastAPI service hands its jobs over and answers how they are."""
    work = user.directory("service")
    (work / "service.py").write_text(SERVICE)
    line = (
        "exec uv run -q --no-project --with fastapi --with uvicorn --with "
        f"{shlex.quote(str(CHECKOUT))} uvicorn service:app --port 18765 --log-level warning"
    )
    print(f"  $ {line}")
    process = subprocess.Popen(["bash", "-c", line], cwd=work, env=user.env, start_new_session=True)
    try:
        until(lambda: answers("http://127.0.0.1:18765/openapi.json"), within_s=TIMEOUT_S)
        made = asked("http://127.0.0.1:18765/jobs?n=6", method="POST")
        look = f"http://127.0.0.1:18765/jobs/{made['id']}"
        until(lambda: asked(look)["state"] == "completed", within_s=30)
        print(f"  GET {look}: {asked(look)}")
        expect(asked(look)["result"].strip(), "42", "what the job came to")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


# -- what they need -----------------------------------------------------------------------------


@contextmanager
def served(user: User, prefix: str, env: Mapping[str, str]) -> Iterator[None]:
    """A daemon under another clock, until the block ends."""
    line = f"{prefix} subagents serve"
    print(f"  $ {line} &")
    with (user.root / "serve.log").open("ab") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {line}"],
            env={**user.env, **env},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        until(lambda: has_daemon(user, env), within_s=30)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def has_daemon(user: User, env: Mapping[str, str]) -> bool:
    done = subprocess.run(
        ["subagents", "version", "--json"],
        env={**user.env, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0 and json.loads(done.stdout).get("daemon") is not None


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - ours
            return True
    except OSError:
        return False


def asked(url: str, *, method: str = "GET") -> Any:
    request = urllib.request.Request(url, method=method)  # noqa: S310 - ours
    with urllib.request.urlopen(request, timeout=30) as found:  # noqa: S310
        return json.load(found)


def seconds(moment: str) -> float:
    from datetime import datetime  # noqa: PLC0415

    return datetime.fromisoformat(moment).timestamp()


def until(happened: Callable[[], bool], *, within_s: float = 60) -> None:
    """Look until it is so.

    Raises:
        Wrong: It did not become so in time.
    """
    due = time.monotonic() + within_s
    while not happened():
        if time.monotonic() > due:
            raise Wrong(f"it did not happen within {within_s:.0f} s")
        time.sleep(0.2)


JOBS: Final[Mapping[str, Callable[[User], None]]] = {
    "install": install,
    "repositories": repositories,
    "fan-out": fan_out,
    "two-hours": two_hours,
    "environment": virtual_environment,
    "three-days": three_days,
    "claude": claude_session,
    "cap": capped_plan,
    "schedule": schedule,
    "service": web_service,
}


def main(arguments: Sequence[str]) -> int:
    """Do all jobs, or those named after ``--only`` (and the installation)."""
    wanted = {"install", *arguments[1:]} if arguments[:1] == ["--only"] else set(JOBS)
    table: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory(prefix="first-day-") as name:
        user = User(Path(name))
        try:
            for word, job in JOBS.items():
                if word not in wanted:
                    continue
                print(f"\n{word}: {textwrap.dedent(job.__doc__ or '').strip()}")
                began, problem = time.monotonic(), "ok"
                try:
                    job(user)
                except (Wrong, subprocess.TimeoutExpired, KeyError, OSError) as error:
                    problem = f"{type(error).__name__}: {error}"
                table.append((word, time.monotonic() - began, problem))
        finally:
            subprocess.run(["subagents", "down"], env=user.env, capture_output=True, check=False)
    print()
    for word, took, problem in table:
        print(f"{word:<14}{took:6.1f} s  {problem}")
    return int(any(problem != "ok" for _, _, problem in table))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
