"""What probes of agents found, kept per version of their program; and what follows for a spawn.

A scope of tools is a promise that somebody else's program keeps. Whether it does is tried for real
(`subagents doctor --probe`), and what was found holds for that version of the program, started that
way. Where a denied tool worked all the same, no scope is promised until another version is there.

Why: docs/decisions/0025-a-scope-is-tried-per-version.md.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from subagents.config.paths import Paths
from subagents.config.programs.program_catalog import installed, subject
from subagents.config.settings import Agent
from subagents.config.state_file import read_entries, write_entries
from subagents.errors import ConfigError

FILE_NAME: Final = "probes.json"
KEPT_MAX: Final = 200
"""Subjects remembered; the ones probed first are forgotten first."""


class ProbeVerdict(StrEnum):
    PROVEN = "proven"
    BROKEN = "broken"
    """The claim is not true."""
    OPEN = "open"
    """It was tried, and the worker did not do what would have shown it."""


class ProbedClaim(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that an adapter says it can do, and what trying it showed."""

    name: str
    verdict: ProbeVerdict
    detail: str


class Probe(msgspec.Struct, frozen=True, rename="camel"):
    """One agent's program, tried."""

    agent_id: str
    runtime: str
    program: str
    version: str | None
    at_ms: int
    claims: tuple[ProbedClaim, ...]

    def claim(self, name: str) -> ProbedClaim | None:
        """What was found of that claim."""
        return next((each for each in self.claims if each.name == name), None)


SCOPE: Final = "scope"
"""The claim that a denied tool cannot be used."""


def probes_file(paths: Paths) -> Path:
    """Subject (``program_catalog.subject``) → ``Probe``."""
    return paths.state_dir / FILE_NAME


def read_probes(paths: Paths) -> dict[str, Probe]:
    """All that are known.

    Raises:
        ConfigError: The file cannot be read, so it is not known what was found.
    """
    return read_entries(probes_file(paths), Probe, hint="remove it: then nothing counts as probed")


def keep(paths: Paths, subject: str, probe: Probe) -> None:
    """Remember what was found, in place of what was found of the same subject before.

    Raises:
        ConfigError: It cannot be written.
    """
    known = read_probes(paths)
    # Removed first, so that it comes last and is forgotten last.
    before = known.pop(subject, None)
    known[subject] = _with(before, probe)
    write_entries(paths, probes_file(paths), known, entries_max=KEPT_MAX)


def _with(before: Probe | None, probe: Probe) -> Probe:
    """What was shown once stays when a later try shows nothing: a tired model proves no adapter."""
    shown = {} if before is None else {each.name: each for each in before.claims}
    claims = [
        shown.get(each.name, each) if each.verdict is ProbeVerdict.OPEN else each
        for each in probe.claims
    ]
    return msgspec.structs.replace(probe, claims=tuple(claims))


class Proof(NamedTuple):
    """What is known of an agent's promise to keep to a scope of tools."""

    refusal: str | None = None
    """It was tried, and a denied tool worked; why no scope can be given."""
    warning: str | None = None
    """It was never tried with this version."""


def proof_of(agent_id: str, agent: Agent, *, paths: Paths, environ: Mapping[str, str]) -> Proof:
    """Whether a scope can be given to that agent. Blocking, some ``stat`` calls and a small file.

    A file that cannot be read counts as one without this agent: `doctor` says what is wrong.
    """
    found = installed(agent, environ)
    if found is None:
        return Proof()
    try:
        probe = read_probes(paths).get(subject(agent, found))
    except ConfigError:
        probe = None
    claim = probe.claim(SCOPE) if probe is not None else None
    if probe is not None and claim is not None and claim.verdict is ProbeVerdict.BROKEN:
        name = f"{probe.program} {probe.version or ''}".strip()
        return Proof(
            refusal=f"the probe of agent {agent_id!r} found that {name} does not keep to a tool "
            f"scope: {claim.detail}"
        )
    if claim is None or claim.verdict is not ProbeVerdict.PROVEN:
        return Proof(
            warning=f"that {found.name} keeps to a tool scope was not tried with the version that "
            f"is installed: subagents doctor --probe {agent_id}"
        )
    return Proof()
