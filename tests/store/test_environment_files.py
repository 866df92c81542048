"""Variables of callers are for their owner alone, and go with their run."""

import os
import stat
import time
from pathlib import Path

import pytest

from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.values import RunId
from subagents.store.environment_files import STRAY_S, EnvironmentFiles

ONE, TWO = RunId("r-0000000001"), RunId("r-0000000002")
BROUGHT = CallerEnvironment(shell={"PATH": "/bin"}, given={"TOKEN": "hush"})


@pytest.mark.requirement("environment:kept")
def test_the_runs_of_one_call_each_have_what_was_brought_for_them(tmp_path: Path) -> None:
    directory = tmp_path / "environments"
    EnvironmentFiles(directory).keep([ONE, TWO], BROUGHT)

    files = EnvironmentFiles(directory)
    assert files.read(ONE) == files.read(TWO) == BROUGHT
    assert stat.S_IMODE((directory / ONE).stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert sorted(each.name for each in directory.iterdir()) == [ONE, TWO]

    files.forget(ONE)
    files.forget(ONE)
    with pytest.raises(FileNotFoundError):
        files.read(ONE)
    assert files.read(TWO) == BROUGHT


@pytest.mark.requirement("environment:kept")
def test_what_a_crash_left_for_runs_that_were_never_stored_goes_an_hour_later(
    tmp_path: Path,
) -> None:
    files = EnvironmentFiles(tmp_path)
    files.forget_strays(lambda _: False)
    files.keep([ONE], BROUGHT)
    files.keep([TWO], BROUGHT)
    (tmp_path / ".r-half").write_text("{")

    files.forget_strays(lambda _: False)
    assert (tmp_path / ONE).exists()

    old = time.time() - STRAY_S - 1
    for each in tmp_path.iterdir():
        os.utime(each, (old, old))
    files.forget_strays(lambda run_id: run_id == TWO)
    assert [each.name for each in tmp_path.iterdir()] == [TWO]


@pytest.mark.requirement("environment:kept")
def test_files_that_go_while_strays_are_looked_for_are_in_nobodys_way(tmp_path: Path) -> None:
    files = EnvironmentFiles(tmp_path)
    files.keep([ONE, TWO], BROUGHT)
    for each in tmp_path.iterdir():
        os.utime(each, (0, 0))

    def is_known(_run_id: RunId) -> bool:
        files.forget(ONE)
        files.forget(TWO)
        return False

    files.forget_strays(is_known)

    assert list(tmp_path.iterdir()) == []
