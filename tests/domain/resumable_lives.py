"""Runs whose runtime can resume and interrupt a session."""

from tests.builders import Life, a_resolved

from subagents.domain.run.events import InterruptRequested
from subagents.domain.run.spec import Abilities, RunSpec

ABLE = Abilities(steer=True, resume=True, interrupt=True)


def able(spec: RunSpec | None = None) -> Life:
    return Life.begin(spec, a_resolved(abilities=ABLE)).start()


def interrupt(life: Life) -> Life:
    life.apply(InterruptRequested(at_ms=life.at_ms, by="me", reason="wrong branch"))
    return life
