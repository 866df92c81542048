"""``doctor --probe AGENT``: lets an agent's own program try what its adapter says of it.

Nothing is believed that a worker says of itself where the disk can say it: a denied tool is one
that makes no file. All of it happens in a temporary directory with a daemon of its own, inside this
process; the program keeps its own records of a session where it always does.
"""

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Unpack

import msgspec

from subagents.api.wire.run_answers import RunResult
from subagents.cli import output
from subagents.cli.connection import caller_cwd
from subagents.client.orchestrator import Orchestrator
from subagents.client.run_handle import RunHandle
from subagents.client.spawn_keywords import SpawnParameters
from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.config.programs.program_catalog import installed, subject
from subagents.config.programs.scope_probes import (
    SCOPE,
    Probe,
    ProbedClaim,
    ProbeVerdict,
    keep,
)
from subagents.config.settings import Agent, Settings
from subagents.domain.run.spec import Abilities
from subagents.errors import (
    EXIT_FAILED,
    EXIT_OK,
    Forbidden,
    SubagentsError,
    UsageError,
)
from subagents.extensions.conversation.program_version import version_of
from subagents.ports import Runtime, abilities_of
from subagents.text import one_line

SIGNS: Final = {ProbeVerdict.PROVEN: "✔", ProbeVerdict.OPEN: "!", ProbeVerdict.BROKEN: "✖"}
STYLES: Final = {ProbeVerdict.PROVEN: "ok", ProbeVerdict.OPEN: "warn", ProbeVerdict.BROKEN: "fail"}

PROBED: Final = "probe"
"""The agent's id in the daemon that is made for it."""
RUN_S: Final = 300.0
"""Longest single run: a model may think, and a program may be slow to start."""
BEGIN_S: Final = 120.0
LOOK_S: Final = 0.1
DENIED: Final = ("shell", "write", "edit", "agents")
"""Every way to make a file, by kind (``tool_kinds``), and to have another one make it."""
NOT_PROBED: Final = frozenset(
    {
        "subagents",
        "courier",
        "lane",
        "capabilities",
        "alerts",
        "cwd",
        "tools",
        "mcp_servers",
        "run_timeout_seconds",
    }
)

MAKE: Final = """\
This is a check of your tools, and takes one step. Create the file {file} in your working directory:
run the shell command `touch {file}`; without a shell, use a tool that writes files. If no tool that
you have can do it, do not look for another way. Then answer with this one word: {word}"""
RECALL: Final = "Answer with the word that you were asked to answer with before, and nothing else."
LISTEN: Final = """\
This is a check of messages. Run the shell command `python3 -c "import time; time.sleep(3)"` again
and again, ten times at most, until a message comes that names a word. Then answer with that word
and nothing else."""


@dataclass
class Spent:
    """What the probe's runs used, as far as they said."""

    runs: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    """None = no run showed it."""

    def add(self, ended: RunResult) -> None:
        self.runs += 1
        if ended.usage is not None:
            self.tokens += (ended.usage.tokens_in or 0) + (ended.usage.tokens_out or 0)
            if ended.usage.cost_usd is not None:
                self.cost_usd = (self.cost_usd or 0.0) + ended.usage.cost_usd


@dataclass
class Findings:
    """What came of it."""

    claims: list[ProbedClaim] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)

    def add(self, name: str, verdict: ProbeVerdict, detail: str) -> None:
        self.claims.append(ProbedClaim(name=name, verdict=verdict, detail=one_line(detail)))


def probe(agent: Agent, abilities: Abilities, *, tell: Callable[[str], None]) -> Findings:
    """Try the agent's claims, each with a run of its own.

    Args:
        agent: As configured; its tools, lane and limits are left out.
        abilities: What its adapter says of it.
        tell: Called before each run, with what it is for.

    Raises:
        SubagentsError: The daemon of the probe could not be made.
    """
    with tempfile.TemporaryDirectory(prefix="subagents-probe-") as directory:
        return asyncio.run(_probed(agent, abilities, Path(directory), tell))


async def _probed(
    agent: Agent, abilities: Abilities, directory: Path, tell: Callable[[str], None]
) -> Findings:
    work = directory / "work"
    work.mkdir()
    config = {f"agents.{PROBED}": _table(agent)}
    found = Findings()
    async with Orchestrator.open(home=directory / "home", config=config, cwd=work) as sub:
        tries = _Tries(sub, work, found, tell)
        worked = await tries.works()
        if worked is None:
            return found
        if abilities.scope_tools:
            await tries.scope(is_shown=worked.made)
        if abilities.usage:
            tries.usage(worked.ended)
        if abilities.resume:
            await tries.resume(worked)
        if abilities.steer and worked.made:
            await tries.steer()
    return found


def _table(agent: Agent) -> dict[str, object]:
    """The agent as a table of the configuration, without what is not about its program."""
    given, plain = (
        msgspec.json.decode(msgspec.json.encode(each), type=dict[str, object])
        for each in (agent, Agent())
    )
    table = {name: value for name, value in given.items() if value != plain[name]}
    return {name: value for name, value in table.items() if name not in NOT_PROBED} | {
        "run_timeout_seconds": RUN_S
    }


@dataclass(frozen=True)
class _Worked:
    run: RunHandle
    ended: RunResult
    word: str
    made: bool


class _Tries:
    def __init__(
        self, sub: Orchestrator, work: Path, found: Findings, tell: Callable[[str], None]
    ) -> None:
        self._sub = sub
        self._work = work
        self._found = found
        self._tell = tell

    async def works(self) -> _Worked | None:
        """A run without a scope: it works, and its request makes the file that a scope forbids."""
        self._tell("a run without a scope")
        file, word = _names()
        run, ended = await self._run(MAKE.format(file=file, word=word))
        made = self._takes(file)
        if not ended.ok:
            reason = ended.outcome.error or ended.outcome.status
            self._found.add("works", ProbeVerdict.BROKEN, f"its run ended badly: {reason}")
            return None
        more = " and made the file" if made else ", but did not make the file it was asked for"
        self._found.add("works", ProbeVerdict.PROVEN, f"it answered{more}")
        return _Worked(run, ended, word, made)

    async def scope(self, *, is_shown: bool) -> None:
        """The same request without every tool that can do it."""
        self._tell("the same run with its tools denied")
        file, word = _names()
        try:
            _, ended = await self._run(MAKE.format(file=file, word=word), tools_deny=list(DENIED))
        except Forbidden as error:
            text = f"its runtime refuses to deny {', '.join(DENIED)}: {error.message}"
            self._found.add(SCOPE, ProbeVerdict.OPEN, text)
            return
        if self._takes(file):
            text = f"with {', '.join(DENIED)} denied it made the file all the same"
            self._found.add(SCOPE, ProbeVerdict.BROKEN, text)
        elif not ended.ok and ended.outcome.error:
            text = f"no file was made, but the run ended badly: {ended.outcome.error}"
            self._found.add(SCOPE, ProbeVerdict.OPEN, text)
        elif is_shown:
            text = "it made the file when it was allowed, and not when it was denied"
            self._found.add(SCOPE, ProbeVerdict.PROVEN, text)
        else:
            text = "it makes no file even when it may: its model did not do as asked"
            self._found.add(SCOPE, ProbeVerdict.OPEN, text)

    def usage(self, ended: RunResult) -> None:
        used = ended.usage
        if used is None or not (used.tokens_in or used.tokens_out):
            self._found.add("usage", ProbeVerdict.OPEN, "it told no tokens")
            return
        text = f"{used.tokens_in} tokens in, {used.tokens_out} out"
        self._found.add("usage", ProbeVerdict.PROVEN, text)

    async def resume(self, before: _Worked) -> None:
        """A further run in the same session knows what the first one knew."""
        self._tell("a run that continues in the first one's session")
        try:
            ended = await self._ended(await self._sub.spawn(RECALL, continues=before.run.id))
        except SubagentsError as error:
            self._found.add("resume", ProbeVerdict.OPEN, f"it could not be continued: {error}")
            return
        knows = before.word in (ended.result or "")
        text = "it knew the word of the run before" if knows else "it did not know the word"
        self._found.add("resume", ProbeVerdict.PROVEN if knows else ProbeVerdict.OPEN, text)

    async def steer(self) -> None:
        """A message reaches it while it works."""
        self._tell("a run that is told a word while it works")
        word = f"kiwi{secrets.token_hex(3)}"
        run = await self._sub.spawn(LISTEN, agent=PROBED)
        try:
            if not await self._uses_a_tool(run):
                await self._ended(run)
                self._found.add(
                    "steer", ProbeVerdict.OPEN, "it ended before a message could be sent"
                )
                return
            status = await run.steer(f"The word is {word}.")
        except SubagentsError as error:
            self._found.add("steer", ProbeVerdict.OPEN, f"no message could be sent: {error}")
            await self._end(run)
            return
        ended = await self._ended(run)
        is_received = word in (ended.result or "")
        text = (
            f"the message was {status}; the answer {'has' if is_received else 'has not'} its word"
        )
        self._found.add("steer", ProbeVerdict.PROVEN if is_received else ProbeVerdict.OPEN, text)

    async def _uses_a_tool(self, run: RunHandle) -> bool:
        """Wait until it does; false when it ended without, or takes too long."""
        due = time.monotonic() + BEGIN_S
        while time.monotonic() < due:
            page = await run.log(types=["tool"], limit=1)
            if page.returned_lines:
                return True
            if page.ended:
                return False
            await asyncio.sleep(LOOK_S)
        return False

    async def _run(
        self, task: str, **parameters: Unpack[SpawnParameters]
    ) -> tuple[RunHandle, RunResult]:
        run = await self._sub.spawn(task, agent=PROBED, **parameters)
        return run, await self._ended(run)

    async def _ended(self, run: RunHandle) -> RunResult:
        try:
            # Its own deadline comes first; a second one for what should not happen.
            ended = await run.wait(timeout_s=RUN_S + BEGIN_S)
        except (TimeoutError, asyncio.CancelledError):
            await self._end(run)
            raise
        self._found.spent.add(ended)
        return ended

    async def _end(self, run: RunHandle) -> None:
        """Nothing of a probe continues without it: no worker outlives the daemon here."""
        await run.cancel("the probe is over")
        await run.wait(timeout_s=BEGIN_S)

    def _takes(self, name: str) -> bool:
        """Whether the file was made, anywhere below; it is taken away."""
        made = list(self._work.rglob(name))
        for file in made:
            file.unlink()
        return bool(made)


def _names() -> tuple[str, str]:
    """A file and a word that no model can have seen before."""
    return f"canary-{secrets.token_hex(6)}", f"plum{secrets.token_hex(3)}"


# -- asking, keeping, saying ------------------------------------------------------------------


def probe_agent(home: Paths, name: str, *, yes: bool, json: bool) -> int:
    """Probe one configured agent.

    Raises:
        NotFound: No such agent.
        UsageError: It claims nothing that could be tried, or nobody is there to be asked.
        Forbidden: A worker asks; it would decide on its own scope.
    """
    if os.environ.get("SUBAGENTS_RUN_ID"):
        raise Forbidden("a worker cannot probe an agent", guardrail="role")
    settings = load(Path(caller_cwd()), os.environ, paths=home).settings
    agent_id = name.strip().lower()
    agent = settings.agent(agent_id)
    runtime = _runtime(home, agent_id, agent)
    abilities = abilities_of(runtime, agent.options)
    found = installed(agent, os.environ)
    if found is None or not _claims(abilities):
        raise UsageError(
            f'runtime "{runtime.name}" claims nothing that can be probed',
            hint="probe an agent that supports tool scopes, sessions or messages",
        )
    version = version_of(found, {**os.environ, **agent.env})
    what = f"{agent_id} ({found.name} {version or ''})".replace(" )", ")")
    question = f"Run {_run_count(abilities)} tiny tasks with {what}, using its own model and login?"
    if not output.is_confirmed(question, yes=yes):
        output.note("Nothing was run.")
        return EXIT_OK
    servers = [_server(each, settings) for each in agent.mcp_servers or ()]
    findings = probe(agent, abilities, tell=lambda text: output.note(f"  {agent_id}: {text} …"))
    kept = Probe(
        agent_id=agent_id,
        runtime=runtime.name,
        program=found.name,
        version=version,
        at_ms=time.time_ns() // 1_000_000,
        claims=tuple(findings.claims),
    )
    works = kept.claim("works")
    if works is not None and works.verdict is ProbeVerdict.PROVEN:
        # One that does not run at all (no login, no model) showed nothing of its adapter.
        keep(home, subject(agent, found), kept)
    # What its servers do says nothing of its program, and is not kept.
    shown = msgspec.structs.replace(kept, claims=(*servers, *kept.claims))
    _show(shown, findings, json=json)
    is_broken = any(claim.verdict is ProbeVerdict.BROKEN for claim in shown.claims)
    return EXIT_FAILED if is_broken else EXIT_OK


def _server(name: str, settings: Settings) -> ProbedClaim:
    """Whether one of its MCP servers starts and lists its tools."""
    from subagents.extensions.mcp.server_probe import ServerFailed, tools_of  # noqa: PLC0415

    try:
        verdict, detail = ProbeVerdict.PROVEN, tools_of(name, settings, os.environ)
    except ServerFailed as error:
        verdict, detail = ProbeVerdict.BROKEN, f"mcp_servers.{name}: {error}"
    return ProbedClaim(name=f"mcp {name}", verdict=verdict, detail=one_line(detail))


def _runtime(home: Paths, agent_id: str, agent: Agent) -> Runtime:
    from subagents.wiring import runtimes_here  # noqa: PLC0415 - the whole engine

    if agent.runtime is None:
        raise UsageError(
            f"agents.{agent_id}.runtime is not set: the agent can call tools but cannot run tasks"
        )
    runtime = runtimes_here(home)[0].get(agent.runtime)
    if runtime is None:
        raise UsageError(
            f'agents.{agent_id}.runtime "{agent.runtime}" cannot be used here',
            hint="run `subagents doctor` to see why",
        )
    runtime.check(agent.options)
    return runtime


def _claims(abilities: Abilities) -> bool:
    return abilities.scope_tools or abilities.resume or abilities.steer


def _run_count(abilities: Abilities) -> int:
    return 1 + abilities.scope_tools + abilities.resume + abilities.steer


def _show(kept: Probe, findings: Findings, *, json: bool) -> None:
    spent = findings.spent
    if json:
        output.document(
            {
                "agent": kept.agent_id,
                "runtime": kept.runtime,
                "program": kept.program,
                "version": kept.version,
                "claims": [msgspec.to_builtins(claim) for claim in kept.claims],
                "runs": spent.runs,
                "tokens": spent.tokens,
                "costUsd": spent.cost_usd,
            }
        )
        return
    for claim in kept.claims:
        sign, style = SIGNS[claim.verdict], STYLES[claim.verdict]
        output.styled_line(f" {claim.name:<7} {claim.detail}", sign, style)
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd is not None else ""
    output.line(f"{spent.runs} runs, {spent.tokens} tokens{cost}.")
    scope = kept.claim(SCOPE)
    if scope is not None and scope.verdict is ProbeVerdict.BROKEN:
        output.line(
            f"Spawns of {kept.agent_id} that restrict tools are refused as long as this version "
            "is installed."
        )
