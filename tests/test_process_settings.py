"""How processes run here, as the command line brings it along."""

import os
import resource
import subprocess
import sys

import msgspec
import pytest

from subagents import process_settings
from subagents.domain.run.caller_environment import LIMITS, ProcessSettings


def own_under(shell: str) -> ProcessSettings:
    """What a process of that shell says of itself."""
    code = "import json; from subagents import process_settings as p; print(json.dumps(p.own()))"
    done = subprocess.run(
        ["sh", "-c", f'{shell}; exec "$0" -c "$1"', sys.executable, code],
        check=True,
        capture_output=True,
    )
    return msgspec.json.decode(done.stdout, type=ProcessSettings)


@pytest.mark.requirement("environment:process")
def test_it_is_what_the_system_says_of_this_process() -> None:
    found = msgspec.convert(process_settings.own(), ProcessSettings)
    umask = os.umask(0)
    os.umask(umask)
    assert found.umask == umask
    assert found.nice == os.getpriority(os.PRIO_PROCESS, 0)
    assert set(found.processors) == os.sched_getaffinity(0)
    assert found.limits["nofile"] == resource.getrlimit(resource.RLIMIT_NOFILE)
    assert found.problem() is None


@pytest.mark.requirement("environment:process")
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o027, 0o077, 0o777])
def test_the_umask_is_read_whatever_it_is_and_stays(umask: int) -> None:
    before = os.umask(umask)
    try:
        assert msgspec.convert(process_settings.own(), ProcessSettings).umask == umask
        assert os.umask(umask) == umask
    finally:
        os.umask(before)


@pytest.mark.requirement("environment:process")
def test_every_limit_that_is_brought_is_one_that_is_taken() -> None:
    assert frozenset(process_settings.LIMITS) == LIMITS


@pytest.mark.requirement("environment:process")
def test_a_shells_limits_are_those_of_its_commands() -> None:
    found = own_under("ulimit -S -n 321; ulimit -S -c 0; umask 0137; ulimit -t 1000")
    assert (found.umask, found.limits["nofile"][0], found.limits["cpu"]) == (
        0o137,
        321,
        (1000,) * 2,
    )
