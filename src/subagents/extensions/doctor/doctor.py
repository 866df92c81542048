"""``doctor``: looks at everything, and says how to mend what is wrong; with --fix it does so."""

import os
import resource
import shutil
import stat
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec

from subagents import extension
from subagents.cli import output
from subagents.cli.command_table import command_of
from subagents.cli.connection import caller_cwd, paths, session
from subagents.cli.doctor_check import FAIL, OK, WARN, Check
from subagents.cli.flags import Json, Parameter, refusal, refuse_unused
from subagents.client.client import Client, Document
from subagents.client.daemon_start import holder, log_message, log_tail, was_told_to_stop
from subagents.config.entry_points import entry_points
from subagents.config.paths import Paths
from subagents.config.settings import Capabilities
from subagents.domain.agents.agent_stats import Stats
from subagents.errors import (
    EXIT_FAILED,
    EXIT_OK,
    ConfigError,
    DaemonUnreachable,
    StoreUnavailable,
    SubagentsError,
)
from subagents.extensions.doctor.doctor_agents import DaemonLogin, agent_checks, codex_checks
from subagents.text import counted, one_line, size
from subagents.version import __version__

if TYPE_CHECKING:
    from subagents.ports import Database

FREE_BYTES_LOW: Final = 500 * 1024 * 1024
FREE_BYTES_FULL: Final = 16 * 1024 * 1024
FILES_LOW: Final = 1024
OTHERS: Final = 0o077
SET_ASIDE_FIX: Final = "nothing of it was changed: restore a copy, or spawn it again"
REFUSAL_CHARS_MAX: Final = 240
NOTIFICATIONS: Final = "notifications"


def doctor(
    file: Annotated[
        Path | None,
        Parameter(help="With --bundle: a new .tar.gz. Default: one with the time, here."),
    ] = None,
    /,
    *,
    bundle: Annotated[
        bool, Parameter(help="Pack what a bug report needs into one file, without secrets.")
    ] = False,
    probe: Annotated[
        str | None,
        Parameter(
            name="--probe",
            help="Test what this agent's program claims to support.",
            metavar="AGENT",
        ),
    ] = None,
    fix: Annotated[bool, Parameter(help="Do what it suggests, where that is safe.")] = False,
    yes: Annotated[
        bool, Parameter(name=("--yes", "-y"), help="Probe without asking for confirmation.")
    ] = False,
    json: Json = False,
) -> int:
    """Check the configuration, directories, daemon, database, disk, agents and workers.

    Changes nothing without `--fix`. The exit code is 1 if a check fails.

    With `--fix`, it closes directories and the socket to others and starts a daemon that had
    crashed, says what it did, and checks again. Everything else is left to you: programs to
    install, files to edit, processes to end.

    With `--bundle`, what is packed is listed: versions, this report, paths, the effective
    configuration with origins, the end of the daemon's log and the states of runs. Tasks, results
    and transcripts are left out, keys, tokens and passwords replaced by `[redacted]`. Nothing is
    sent anywhere.

    With `--probe`, an agent's program runs a few tiny tasks in a temporary directory,
    with its own model and login, to find out whether denied tools are really blocked,
    sessions can be continued and messages arrive. The findings are kept for that
    version of the program. If a denied tool worked, spawns that restrict its tools are
    refused.

    For example:

        subagents doctor

        subagents doctor --fix --json

        subagents doctor --probe claude

        subagents doctor --bundle
    """
    home = paths()
    if file is not None and not bundle:
        raise refusal("FILE", "needs --bundle")
    if bundle:
        refuse_unused("is not done together with --bundle", fix=fix, probe=probe is not None)
        from subagents.extensions.doctor.support_bundle import packed  # noqa: PLC0415 - seldom

        return packed(file, examined(home).document(home), json=json)
    if probe is not None:
        refuse_unused("is not done together with --probe: give one of them", fix=fix)
        from subagents.extensions.doctor.scope_probe import probe_agent  # noqa: PLC0415 - the whole engine

        return probe_agent(home, probe, yes=yes, json=json)
    found, done = examined(home), list[str]()
    if fix:
        from subagents.extensions.doctor.doctor_fixes import fixed  # noqa: PLC0415

        done = fixed(home, found.checks)
        found = examined(home) if done else found
    exit_code = EXIT_FAILED if found.has_failed else EXIT_OK
    if json:
        output.document({**found.document(home), "fixed": done})
        return exit_code
    _print(found)
    for text in done:
        output.line(f"Fixed: {text}")
    if fix and not done:
        output.line("Nothing was wrong that --fix could put right.")
    return exit_code


class Examined(NamedTuple):
    """What was found."""

    checks: list[Check]
    version: Document | None
    """The daemon's; None = it does not answer."""
    diagnostics: Document | None

    @property
    def has_failed(self) -> bool:
        return any(check.status == FAIL for check in self.checks)

    def document(self, home: Paths) -> Document:
        """What ``--json`` prints."""
        version = self.version
        return {
            "daemonPid": None if version is None else version.get("pid"),
            "version": __version__,
            "daemonVersion": None if version is None else version.get("version"),
            "socket": str(home.socket),
            "supervisorSocket": str(home.supervisor_socket),
            "database": str(home.database),
            "configFile": str(home.config_file),
            "ok": not self.has_failed,
            "checks": self.checks,
        }


def examined(home: Paths) -> Examined:
    """Look at everything; changes nothing."""
    version, diagnostics, silence = _ask_daemon(home)
    records = _records(home) if version is not None else ()
    checks = [
        *_platform(),
        _program(),
        _config(home),
        *_agents(home, records),
        *_workers(home, diagnostics),
        *codex_checks(Path(caller_cwd()), os.environ),
        *_directories(home),
        _daemon(home, version, diagnostics, silence),
        *_of_daemon(diagnostics),
        _database(home),
        *(check for _, found in extension.made("checks", home, diagnostics) for check in found),
        _disk(home),
        _files(),
    ]
    return Examined(checks, version, diagnostics)


def _print(found: Examined) -> None:
    width = max(12, *(len(check.name) + 1 for check in found.checks))
    for check in found.checks:
        sign = {OK: "✔", WARN: "!", FAIL: "✖"}[check.status]
        first, *rest = check.detail.splitlines() or [""]
        output.hanging(f" {check.name:<{width}}", first, mark=sign, word=check.status)
        for text in rest:
            output.hanging(f"{'':{width + 2}}", text)
        if check.fix and check.status != OK:
            # Whole, so that a command can be copied.
            output.line(f"{'':{width + 2}}→ {check.fix}")
    output.line(_what_is_sent(found))


def _what_is_sent(found: Examined) -> str:
    """What the daemon tells receivers of runs by itself."""
    sent = []
    if endpoint := _endpoint(found.diagnostics):
        sent.append(f"Spans of ended runs are sent to {endpoint}")
    ways = [
        str(each.get("to")) for each in _documents((found.diagnostics or {}).get(NOTIFICATIONS))
    ]
    if ways:
        sent.append(f"{'n' if sent else 'N'}otifications of runs to {', '.join(ways)}")
    if not sent:
        return "No telemetry and no notifications are sent: the daemon knows no receiver."
    return f"{'; '.join(sent)}."


def _ask_daemon(home: Paths) -> tuple[Document | None, Document | None, str]:
    """The daemon's version and diagnostics, or why it does not answer."""
    with Client(home.socket, session=session(), timeout_s=10) as client:
        try:
            found = client.get("/version")
            found["code"] = client.daemon_version or found.get("version")
            return found, client.get("/v1/diagnostics"), ""
        except DaemonUnreachable as error:
            return None, None, error.message
        except SubagentsError as error:
            return client.get("/version"), None, error.message


def _records(home: Paths) -> Sequence[Stats]:
    """What the agents' attempts came to; nothing when an older daemon does not say."""
    with Client(home.socket, session=session(), timeout_s=10) as client:
        try:
            return msgspec.convert(client.get("/v1/agents/stats").get("stats"), list[Stats])
        except (SubagentsError, msgspec.ValidationError):
            return ()


def _platform() -> Iterator[Check]:
    from subagents.runtimes.process.processes import check_sight  # noqa: PLC0415  only for doctor

    python = ".".join(map(str, sys.version_info[:3]))
    if sys.platform == "linux":
        try:
            check_sight()
        except ConfigError as error:
            yield Check("platform", FAIL, error.message, error.hint)
        else:
            yield Check("platform", OK, f"Linux, Python {python}, subagents {__version__}")
    else:
        yield Check(
            "platform",
            WARN,
            f"{sys.platform}, Python {python}: no pidfd and no /proc here",
            "workers are watched by polling, and a reused process id is recognised less surely",
        )
    shell = shutil.which("bash") or shutil.which("sh")
    if shell is None:
        fix = "install bash, or configure agents that need none"
        yield Check("shell", FAIL, "neither bash nor sh is on PATH", fix)
    else:
        yield Check("shell", OK, f"{shell} runs the tasks of the agent `command`")


def _program() -> Check:
    """Whether agent programs and their hooks find ours."""
    if found := shutil.which("subagents"):
        return Check("program", OK, found)
    started = Path(sys.argv[0]).absolute()
    place = started.parent if started.name == "subagents" else sysconfig.get_path("scripts")
    return Check(
        "program",
        WARN,
        "no `subagents` is on PATH, where agent programs and their hooks look for it",
        f'export PATH="{place}:$PATH", also in what your shell reads when it starts',
    )


def _config(home: Paths) -> Check:
    from subagents.config.layers import load  # noqa: PLC0415

    try:
        config = load(Path(caller_cwd()), os.environ, paths=home)
    except ConfigError as error:
        return Check("config", FAIL, error.message, error.hint or "subagents config --check")
    files = ", ".join(map(str, config.files)) or "no file; the defaults apply (subagents init)"
    if config.ignored:
        text = "\n".join((*config.ignored, *config.warnings))
        return Check("config", WARN, text, "look at the file first: it can name programs to run")
    if config.warnings:
        text = "\n".join(config.warnings)
        return Check("config", WARN, text, "correct the name, or ignore this if it is intended")
    return Check("config", OK, files)


def _agents(home: Paths, records: Sequence[Stats]) -> Iterator[Check]:
    """Their capability cards; what is wrong with them the configuration's check says."""
    from subagents.config.agent_cards import working_agents  # noqa: PLC0415
    from subagents.config.layers import load  # noqa: PLC0415
    from subagents.extensions.doctor.card_oddities import oddities  # noqa: PLC0415

    try:
        settings = load(Path(caller_cwd()), os.environ, paths=home).settings
    except ConfigError:
        return
    odd = [
        f"agents.{each.agent_id} {each.text}: {each.fix}" for each in oddities(settings, records)
    ]
    if odd:
        fix = "edit subagents.toml; whoever chooses an agent believes its card"
        yield Check("agents", WARN, "\n".join(odd), fix)
        return
    able = working_agents(settings)
    cards = sum(agent.capabilities != Capabilities() for agent in able.values())
    yield Check("agents", OK, f"{len(able)} can work, {cards} with a capability card")


def _extensions() -> Iterator[Check]:
    """Those of other packages: what each adds, and what of it does not work."""
    found = extension.found()
    packages = {
        name: " and ".join(f"{each.dist.name} {each.dist.version}" for each in points if each.dist)
        for name, points in entry_points(extension.GROUP).items()
    }
    broken = {each.name: each.reason for each in extension.problems()}
    for name, reason in broken.items():
        is_used = any(each.name == name for each in found.used)
        text = (
            f"extension {name!r} {'does not wholly work' if is_used else 'is not used'}: {reason}"
        )
        fix = f"correct or uninstall {packages.get(name) or 'the package that brings it'}"
        yield Check("plugins", FAIL, text, fix)
    for each in (each for each in found.used if each.name not in extension.OWN):
        rows = [row for rows in each.commands.values() for row in rows]
        taken = [f"`{row.name}`" for row in rows if command_of(row.name) is not row]
        text = f"extension {each.name!r} of {packages.get(each.name)}"
        if taken:
            text = f"{text}: there is another {', '.join(taken)}, which is the one that is called"
            yield Check("plugins", FAIL, text, "call its command by another name")
        elif each.name not in broken:
            adds = [field for field, value in zip(each._fields[1:], each[1:], strict=True) if value]
            yield Check("plugins", OK, f"{text}: {', '.join(adds)}")


def _workers(home: Paths, diagnostics: Document | None) -> Iterator[Check]:
    """Each agent's program, and the plugins that bring runtimes."""
    from subagents.config.layers import load  # noqa: PLC0415
    from subagents.config.programs.scope_probes import read_probes  # noqa: PLC0415
    from subagents.store.allowed_call_file import AllowedCallFile  # noqa: PLC0415
    from subagents.wiring import runtimes_here  # noqa: PLC0415

    runtimes, refused = runtimes_here(home)
    for plugin in refused:
        text = f"runtime {plugin.name!r} of {plugin.package} is not used: {plugin.reason}"
        yield Check("plugins", FAIL, text, f"correct or uninstall {plugin.package}")
    yield from _extensions()
    try:
        settings = load(Path(caller_cwd()), os.environ, paths=home).settings
    except ConfigError:
        return
    try:
        probes = read_probes(home)
    except ConfigError as error:
        yield Check("probes", WARN, error.message, error.hint)
        probes = {}
    try:
        AllowedCallFile(home).read()
    except ConfigError as error:
        yield Check("allowed calls", WARN, f"{error.message}; you are asked each time", error.hint)
    yield _sandbox()
    yield from agent_checks(
        settings.agents, runtimes, probes, os.environ, daemon=_daemon_login(diagnostics)
    )


def _daemon_login(diagnostics: Document | None) -> DaemonLogin | None:
    """What the daemon has for runs whose caller brings nothing; None = it does not say."""
    names = None if diagnostics is None else diagnostics.get("loginVariables")
    if diagnostics is None or not isinstance(names, list):
        return None
    by = diagnostics.get("startedBy")
    return DaemonLogin(frozenset(map(str, names)), by if isinstance(by, str) else None)


def _sandbox() -> Check:
    """Whether agents without a sandbox of their own can be kept to their access."""
    from subagents.runtimes.process import sandbox  # noqa: PLC0415

    missing = sandbox.problem()
    if missing is None:
        return Check("sandbox", OK, "bubblewrap works: for access and --isolation sandbox")
    text = (
        f"{missing}: agents with access read or write have no shell, or are refused; so is "
        "--isolation sandbox"
    )
    return Check("sandbox", WARN, text, sandbox.INSTALL)


def _directories(home: Paths) -> Iterator[Check]:
    for name, directory in (("state", home.state_dir), ("runtime", home.socket.parent)):
        if not directory.exists():
            yield Check(name, OK, f"{directory} (not created yet)")
            continue
        found = directory.stat()
        if not directory.is_dir():
            yield Check(name, FAIL, f"{directory} is not a directory", f"move {directory} away")
        elif found.st_uid != os.getuid():
            detail = f"{directory} belongs to uid {found.st_uid}"
            yield Check(name, FAIL, detail, "set SUBAGENTS_HOME to a directory of your own")
        elif stat.S_IMODE(found.st_mode) & OTHERS:
            mode = f"{stat.S_IMODE(found.st_mode):04o}"
            detail = f"{directory} is open to others ({mode})"
            yield Check(name, WARN, detail, f"chmod 700 {directory}")
        elif not os.access(directory, os.W_OK | os.X_OK):
            yield Check(name, FAIL, f"{directory} is not writable", f"chmod u+rwx {directory}")
        else:
            yield Check(name, OK, str(directory))


def _daemon(home: Paths, version: Document | None, found: Document | None, silence: str) -> Check:
    if version is not None:
        code = version.get("code", version.get("version"))
        detail = f"pid {version.get('pid')}, version {code}, {home.socket}"
        if code != __version__:
            fix = "subagents down --yes && subagents up"
            return Check("daemon", WARN, f"{detail}; this command is {__version__}", fix)
        if found is not None and found.get("httpUrl"):
            detail += f", {found['httpUrl']}"
        return _socket_mode(home, detail)
    holding = holder(home)
    if holding is not None and not holding.is_here:
        detail = f"at work elsewhere ({holding.words}), and {silence}"
        return Check("daemon", WARN, detail, "run the command there, or stop it there")
    if holding is None and was_told_to_stop(home):
        return Check("daemon", OK, "not running: it was told to stop (subagents up starts it)")
    if holding is None and not home.socket.exists():
        return Check("daemon", OK, "not running (any command that needs it starts it)")
    tail = log_tail(home.log_file).strip().splitlines()
    newest = log_message(tail[-1]) if tail else ""
    last = (
        f"\nlast line of {home.log_file}: {one_line(newest, output.CELL_CHARS_MAX)}" if tail else ""
    )
    if holding is not None:
        detail = f"{holding.words} holds this home, but {silence}{last}"
        return Check("daemon", WARN, detail, "wait for it, or: subagents down && subagents up")
    return Check("daemon", WARN, f"its socket is there, but {silence}{last}", "subagents up")


def _socket_mode(home: Paths, detail: str) -> Check:
    mode = stat.S_IMODE(home.socket.stat().st_mode)
    if mode & OTHERS and stat.S_IMODE(home.socket.parent.stat().st_mode) & OTHERS:
        fix = f"chmod 600 {home.socket}"
        return Check("daemon", FAIL, f"{detail}: others may connect ({mode:04o})", fix)
    return Check("daemon", OK, detail)


def _of_daemon(found: Document | None) -> Iterator[Check]:
    """What only the running daemon knows."""
    if found is None:
        return
    yield Check(
        "runs", OK, f"{found.get('openRuns')} open, {found.get('liveAttempts')} attempts alive"
    )
    degraded = found.get("degraded")
    if degraded:
        fix = "correct what it names; new runs are then accepted again, without a restart"
        yield Check("accepting", FAIL, f"no new runs are accepted: {degraded}", fix)
    listed = _documents(found.get("orphans"))
    for aside in _documents(found.get("setAside")):
        own = [each for each in listed if str(each["attemptId"]).startswith(f"{aside['name']}#")]
        left = f"; its worker goes on, unwatched (pid {own[0]['pid']})" if own else ""
        yield Check("set aside", WARN, f"{aside['name']}: {aside['reason']}{left}", SET_ASIDE_FIX)
        listed = [each for each in listed if each not in own]
    if listed:
        names = ", ".join(f"{each.get('attemptId')} (pid {each.get('pid')})" for each in listed[:5])
        pids = " ".join(str(each.get("pid")) for each in listed[:5])
        yield Check("orphans", WARN, f"workers without a run: {names}", f"kill {pids}")
    else:
        yield Check("orphans", OK, "no workers without a run")
    if found.get("containment"):
        yield Check("containment", OK, str(found["containment"]))
    yield _refusals(found)
    yield from _budgets(found)
    if found.get("log"):
        yield Check("log", OK, f"{found['log']} (lines of JSON)")
    yield from _telemetry(found)


def _documents(found: object) -> list[Document]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _budgets(found: Document) -> Iterator[Check]:
    """What is used of each cap over several runs."""
    budgets = found.get("budgets")
    for each in budgets if isinstance(budgets, list) else []:
        is_spent = bool(each.get("exhausted"))
        until = f" until {each['untilAt']}" if each.get("untilAt") else ""
        detail = f"{each.get('key')}: {each.get('text')}"
        if is_spent:
            fix = f"raise [{each.get('key')}] in subagents.toml and restart the daemon"
            yield Check("budget", WARN, f"{detail}; no new runs under it{until}", fix)
        else:
            yield Check("budget", OK, detail)


def _endpoint(found: Document | None) -> str | None:
    telemetry = found.get("telemetry") if found is not None else None
    return str(telemetry["endpoint"]) if isinstance(telemetry, dict) else None


def _telemetry(found: Document) -> Iterator[Check]:
    """How the spans are getting on, when they are sent anywhere."""
    telemetry = found.get("telemetry")
    if not isinstance(telemetry, dict):
        return
    sent = f"{telemetry.get('spansSent')} spans sent to {telemetry.get('endpoint')}"
    if telemetry.get("lastError"):
        fix = "start the receiver or correct telemetry.otlp_endpoint; nothing is lost meanwhile"
        yield Check("telemetry", WARN, f"{sent}; now: {telemetry['lastError']}", fix)
    elif telemetry.get("spansRefused"):
        fix = "read the log: the receiver said why"
        yield Check("telemetry", WARN, f"{sent}, {telemetry['spansRefused']} refused", fix)
    else:
        yield Check("telemetry", OK, sent)


def _refusals(found: Document) -> Check:
    """Calls that were turned away for who made them."""
    refusals = found.get("refusals")
    if not isinstance(refusals, dict) or not refusals.get("lastDay"):
        return Check("refusals", OK, "no calls were refused in the last day")
    number, newest = refusals["lastDay"], refusals.get("newest") or []
    lines = [f"{each['call']} by {each['by']}: {each['reason']}" for each in newest]
    shown = "\n".join(one_line(line, chars_max=REFUSAL_CHARS_MAX) for line in lines)
    what = counted(number, "call was", "calls were")
    fix = f"if you do not know them, read {refusals.get('file')}"
    return Check("refusals", WARN, f"{what} refused in the last day\n{shown}", fix)


def _database(home: Paths) -> Check:
    from subagents.stores import database_of, problems_of  # noqa: PLC0415

    try:
        database = database_of(home)
        problems, held = problems_of(database), database.size_bytes()
    except SubagentsError as error:
        if isinstance(error, StoreUnavailable) and _is_not_made(database):
            return Check("database", OK, f"{database.place} (not created yet)")
        return Check("database", FAIL, error.message, error.hint)
    if problems:
        return Check("database", FAIL, "\n".join(problems), database.ways_out)
    return Check("database", OK, f"{database.place} ({size(held)}, checked)")


def _is_not_made(database: "Database") -> bool:
    try:
        return database.size_bytes() == 0
    except StoreUnavailable:
        return False


def _disk(home: Paths) -> Check:
    directory = home.state_dir
    while not directory.exists():
        directory = directory.parent
    free = shutil.disk_usage(directory).free
    detail = f"{size(free)} free at {directory}"
    if free < FREE_BYTES_FULL:
        return Check("disk", FAIL, detail, "free disk space: new runs are refused")
    if free < FREE_BYTES_LOW:
        return Check("disk", WARN, detail, "free disk space before new runs are refused")
    return Check("disk", OK, detail)


def _files() -> Check:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    detail = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft} open files at most"
    if soft != resource.RLIM_INFINITY and soft < FILES_LOW:
        return Check("files", WARN, detail, f"ulimit -n {FILES_LOW} before the daemon starts")
    return Check("files", OK, detail)
