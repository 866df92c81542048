"""``doctor --probe AGENT``: asks first, keeps what was found, and says what it cost."""

import os
import time
from pathlib import Path
from typing import Final

import msgspec

from subagents.cli import output
from subagents.cli.connection import caller_cwd
from subagents.cli.setup.doctor_agents import version_of
from subagents.cli.setup.scope_probe import Findings, probe
from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.config.program_catalog import installed, subject
from subagents.config.scope_probes import (
    SCOPE,
    Probe,
    ProbeVerdict,
    keep,
)
from subagents.config.settings import Agent
from subagents.domain.run.spec import Abilities
from subagents.errors import (
    EXIT_FAILED,
    EXIT_OK,
    Forbidden,
    UsageError,
)
from subagents.ports import Runtime, abilities_of

SIGNS: Final = {ProbeVerdict.PROVEN: "✔", ProbeVerdict.OPEN: "!", ProbeVerdict.BROKEN: "✖"}
STYLES: Final = {ProbeVerdict.PROVEN: "ok", ProbeVerdict.OPEN: "warn", ProbeVerdict.BROKEN: "fail"}


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
            f'runtime "{runtime.name}" claims nothing that a probe could try',
            hint="probe an agent whose tools can be scoped, or whose sessions go on",
        )
    version = version_of(found, {**os.environ, **agent.env})
    what = f"{agent_id} ({found.name} {version or ''})".replace(" )", ")")
    question = f"Let {what} run {_runs(abilities)} tiny tasks with its own model and login?"
    if not output.is_confirmed(question, yes=yes):
        output.note("Nothing was run.")
        return EXIT_OK
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
    _show(kept, findings, json=json)
    is_broken = any(claim.verdict is ProbeVerdict.BROKEN for claim in findings.claims)
    return EXIT_FAILED if is_broken else EXIT_OK


def _runtime(home: Paths, agent_id: str, agent: Agent) -> Runtime:
    from subagents.wiring import runtimes_here  # noqa: PLC0415 - the whole engine

    if agent.runtime is None:
        raise UsageError(f"agents.{agent_id}.runtime is not set: it can call, but not work")
    runtime = runtimes_here(home)[0].get(agent.runtime)
    if runtime is None:
        raise UsageError(
            f'agents.{agent_id}.runtime "{agent.runtime}" cannot be used here',
            hint="subagents doctor says why",
        )
    runtime.check(agent.options)
    return runtime


def _claims(abilities: Abilities) -> bool:
    return abilities.scope_tools or abilities.resume or abilities.steer


def _runs(abilities: Abilities) -> int:
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
        output.styled_line(f" {claim.name:<8}{claim.detail}", sign, style)
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd is not None else ""
    output.line(f"{spent.runs} runs, {spent.tokens} tokens{cost}.")
    scope = kept.claim(SCOPE)
    if scope is not None and scope.verdict is ProbeVerdict.BROKEN:
        output.line(
            f"Spawns of {kept.agent_id} with a tool scope are refused for as long as this version "
            "is installed."
        )
