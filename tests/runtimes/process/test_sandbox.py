"""A worker in a sandbox writes where it works and nowhere else."""

import sys
from pathlib import Path

import pytest
from tests.bubblewrap import held, needs_bubblewrap
from tests.repository import a_repository

from subagents import process_group
from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.values import replace
from subagents.errors import UsageError
from subagents.runtimes.process import sandbox
from subagents.runtimes.process.sandbox import Places, check_place, places_of, wrapped

READ = Access(level=AccessLevel.READ)
NONE = Places()


def write(cwd: Path) -> Access:
    return Access(level=AccessLevel.WRITE, below=str(cwd))


def sh(line: str, cwd: Path, access: Access, places: Places = NONE, **more: bool) -> str:
    """What a shell in the sandbox prints; its home is beside the working directory."""
    argv = wrapped(
        ["/bin/sh", "-c", line], cwd=str(cwd), access=access, places=places, hold=held, **more
    )
    return process_group.run(list(argv), timeout_s=20).stdout.decode()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    cwd = tmp_path / "work"
    cwd.mkdir()
    return cwd


@needs_bubblewrap
@pytest.mark.requirement("access:sandbox")
def test_it_writes_where_it_works_and_nowhere_else(work: Path) -> None:
    home = work.parent / "home"
    line = f"echo x > in; echo x > {home}/out; echo x > /var/tmp/out-of-it; echo x > /tmp/own; ls"

    assert sh(line, work, write(work)).split() == ["in"]
    assert list(home.iterdir()) == []
    assert not Path("/var/tmp/out-of-it").exists()
    assert not Path("/tmp/own").exists()


@needs_bubblewrap
@pytest.mark.requirement("access:sandbox")
def test_a_reader_writes_nothing(work: Path) -> None:
    (work / "there").write_text("seen")

    assert sh("cat there; echo x > in; rm there", work, READ) == "seen"
    assert [each.name for each in work.iterdir()] == ["there"]


@needs_bubblewrap
@pytest.mark.requirement("access:sandbox")
def test_what_a_later_program_obeys_stays_as_it_is(work: Path) -> None:
    a_repository(work)
    state = work.parent / "home" / ".agent"
    state.mkdir()
    (state / "settings").write_text("mine")
    places = Places(writable=(str(state),), guarded=(str(state / "settings"),))

    sh(
        f"echo x > .git/hooks/pre-commit; echo x > .git/index; echo x > {state}/settings; "
        f"echo x > {state}/session",
        work,
        write(work),
        places,
    )

    assert not (work / ".git" / "hooks" / "pre-commit").exists()
    assert (work / ".git" / "index").read_text() == "x\n"
    assert (state / "settings").read_text() == "mine"
    assert (state / "session").exists()


@needs_bubblewrap
@pytest.mark.requirement("access:sandbox")
def test_it_sees_no_process_but_its_own_nor_the_operators_token(work: Path) -> None:
    state = work.parent / "state"
    state.mkdir()
    (state / "operator.token").write_text("secret")
    places = places_of({"HOME": str(work.parent)}, state_dir=state)

    said = sh(
        f"cat {state}/operator.token; ls /proc | grep -c '^[0-9]'; grep CapEff /proc/self/status",
        work,
        write(work),
        places,
    )

    assert "secret" not in said
    assert int(said.split()[0]) < 10
    assert said.split()[-1].strip("0") == ""


@needs_bubblewrap
@pytest.mark.requirement("access:network")
def test_without_a_network_it_has_no_interface_but_its_own(work: Path) -> None:
    names = sh("cat /proc/net/dev", work, READ, is_offline=True)
    assert [line.split(":")[0].strip() for line in names.splitlines()[2:]] == ["lo"]


@needs_bubblewrap
@pytest.mark.requirement("access:sandbox")
def test_all_of_the_file_system_is_no_working_directory(work: Path) -> None:
    del work
    with pytest.raises(UsageError, match="name another cwd"):
        sh("true", Path("/"), write(Path("/")))


@pytest.mark.requirement("access:sandbox")
def test_without_bubblewrap_the_way_out_is_named(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(work))
    assert sandbox.problem() == "bubblewrap is not installed"
    with pytest.raises(UsageError, match="apt install bubblewrap"):
        sh("true", work, READ)
    program = work / "bwrap"
    program.write_text("#!/bin/sh\necho no >&2; exit 1\n")
    program.chmod(0o755)
    assert sandbox.problem() == f"{program} cannot make a sandbox here: no"
    # Whatever was in its way is gone.
    program.write_text("#!/bin/sh\n")
    assert sandbox.problem() is None
    refusal = sandbox.unkept(READ, "bubblewrap is not installed")
    assert 'access = "full"' in (refusal.hint or "")


@pytest.mark.requirement("access:sandbox")
def test_what_lies_below_tmp_is_seen_by_its_first_directory(tmp_path: Path) -> None:
    del tmp_path
    places = places_of({"PATH": "/tmp/tools/bin:bin", "HOME": "/home/me"}, state_dir=Path("/s"))
    assert "/tmp/tools/bin" in places.visible
    assert "bin" not in places.visible
    assert sys.prefix in places.visible
    assert places.hidden == ("/s/operator.token",)


@pytest.mark.requirement("access:links")
@pytest.mark.parametrize("leads", ["/", "../..", "../home", "there"])
def test_a_directory_that_became_a_link_since_the_spawn_is_refused(work: Path, leads: str) -> None:
    (work / "there").mkdir()
    cwd = work / "sub"
    cwd.symlink_to(leads)
    below = Access(level=AccessLevel.WRITE, below=str(cwd), is_pinned=True)
    with pytest.raises(UsageError, match="symbolic link now"):
        check_place(str(cwd), below)
    check_place(str(work / "there"), replace(below, below=str(work / "there")))
    # Who is kept to one place by nobody above it may have links on the way.
    check_place(str(cwd), replace(below, is_pinned=False))
    check_place(str(cwd), replace(below, level=AccessLevel.READ))


@pytest.mark.requirement("access:links")
def test_a_directory_that_is_not_there_is_named(work: Path) -> None:
    with pytest.raises(UsageError, match="gone does not exist"):
        check_place(str(work / "gone"), None)
