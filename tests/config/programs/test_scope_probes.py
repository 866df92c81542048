"""What a probe found holds for the version of the program that it tried."""

from pathlib import Path

import msgspec
import pytest

from subagents.config.paths import Paths
from subagents.config.programs.program_catalog import installed, subject
from subagents.config.programs.scope_probes import (
    SCOPE,
    Probe,
    ProbedClaim,
    ProbeVerdict,
    keep,
    probes_file,
    proof_of,
    read_probes,
)
from subagents.config.settings import Agent


def probe(verdict: ProbeVerdict, detail: str = "seen") -> Probe:
    claim = ProbedClaim(name=SCOPE, verdict=verdict, detail=detail)
    return Probe(
        agent_id="a", runtime="acp", program="gemini", version="1", at_ms=1, claims=(claim,)
    )


class Machine:
    """A home, and one program on PATH that works for one agent."""

    def __init__(self, root: Path) -> None:
        self.environ = {"HOME": str(root), "SUBAGENTS_HOME": str(root / "s"), "PATH": str(root)}
        self.paths = Paths.resolve(self.environ)
        self.agent = msgspec.convert(
            {"runtime": "acp", "runtime_options": {"agent": "gemini"}}, Agent
        )
        self.program = root / "gemini"
        self.install("1")

    def install(self, version: str) -> None:
        self.program.write_text(f"#!/bin/sh\n# {version}\n")
        self.program.chmod(0o755)

    def keep(self, found: Probe) -> None:
        keep(self.paths, subject(self.agent, installed(self.agent, self.environ)), found)

    def proof(self) -> tuple[bool, bool]:
        """Whether a scope is refused, and whether it is warned of."""
        proof = proof_of("a", self.agent, paths=self.paths, environ=self.environ)
        return proof.refusal is not None, proof.warning is not None


@pytest.mark.requirement("probe:per-version")
def test_a_broken_scope_is_refused_until_another_version_is_installed(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.proof() == (False, True)

    machine.keep(probe(ProbeVerdict.BROKEN))
    assert machine.proof() == (True, False)
    machine.install("another version")

    assert machine.proof() == (False, True)


@pytest.mark.requirement("probe:per-version")
def test_what_was_shown_once_stays_when_a_later_try_shows_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.keep(probe(ProbeVerdict.PROVEN, "it was denied"))
    machine.keep(probe(ProbeVerdict.OPEN, "it never tried"))

    (kept,) = read_probes(machine.paths).values()
    assert kept.claim(SCOPE) == ProbedClaim(
        name=SCOPE, verdict=ProbeVerdict.PROVEN, detail="it was denied"
    )
    assert machine.proof() == (False, False)


@pytest.mark.requirement("probe:per-version")
def test_a_file_that_cannot_be_read_is_as_if_nothing_was_tried(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.paths.ensure()
    probes_file(machine.paths).write_text("{")

    assert machine.proof() == (False, True)
