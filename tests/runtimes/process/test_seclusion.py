"""A worker in a sandbox sees nothing of its user's but where it works."""

from pathlib import Path

import pytest
from tests.bubblewrap import held, needs_bubblewrap

from subagents import process_group
from subagents.domain.run.access import Access, AccessLevel
from subagents.errors import UsageError
from subagents.runtimes.process import sandbox, seclusion
from subagents.runtimes.process.seclusion import Seclusion


class Place:
    """A user's home with a secret and a project in it, and this installation's state."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.work = self.home / "project"
        self.state = root / "state"
        self.attempt = self.state / "attempts" / "r-1" / "1"
        for each in (self.home / ".ssh", self.work, self.attempt):
            each.mkdir(parents=True)
        (self.home / ".ssh" / "id").write_text("private key")
        (self.state / "operator.token").write_text("operator")
        (self.attempt / "task").write_text("the task")

    def view(self, path: str = "/usr/bin:/bin") -> Seclusion:
        return seclusion.of_worker(
            {"HOME": str(self.home)},
            search=(path,),
            socket=str(self.state / "run" / "subagents.sock"),
            attempt=self.attempt,
            state_dir=self.state,
        )

    def argv(self, line: str, *, level: AccessLevel, network: bool, path: str) -> tuple[str, ...]:
        cwd = str(self.work)
        return sandbox.secluded(
            ["/bin/sh", "-c", line],
            cwd=cwd,
            access=Access(level=level, network=network, below=cwd, sees=cwd),
            seclusion=self.view(path),
            state_dir=self.state,
            hold=held,
        )

    def sh(
        self,
        line: str,
        *,
        level: AccessLevel = AccessLevel.WRITE,
        network: bool = False,
        path: str = "/usr/bin:/bin",
    ) -> str:
        """What a shell in the sandbox prints."""
        argv = self.argv(line, level=level, network=network, path=path)
        return process_group.run(list(argv), timeout_s=20).stdout.decode()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    found = Place(tmp_path)
    monkeypatch.setenv("HOME", str(found.home))
    return found


@needs_bubblewrap
@pytest.mark.requirement("sandbox:view")
def test_it_sees_where_it_works_and_its_task_and_nothing_else_of_its_users(place: Place) -> None:
    (place.work / "source").write_text("the source")
    said = place.sh(
        f"cat source; cat {place.attempt}/task; cat {place.home}/.ssh/id {place.state}/*.token; "
        f"echo; ls -A {place.home}; ls {place.state}; cat /etc/shadow"
    )
    assert said.splitlines() == ["the sourcethe task", "project", "attempts"]


@needs_bubblewrap
@pytest.mark.requirement("sandbox:writing")
def test_it_writes_where_it_works_and_what_else_it_writes_is_gone_with_it(place: Place) -> None:
    outside = (place.home / "new", place.state / "new", Path("/tmp/new-of-it"), Path("/new-of-it"))
    for each in (place.work / "new", *outside):
        place.sh(f"echo x > {each}")
    assert (place.work / "new").read_text() == "x\n"
    assert [each for each in outside if each.exists()] == []

    fixed = ("/new", "/usr/new", "/etc/new", f"{place.attempt}/new", "/home/new")
    said = place.sh("; ".join(f"(echo x > {each}) 2>/dev/null || echo no" for each in fixed))
    assert said.split() == ["no"] * len(fixed)


@needs_bubblewrap
@pytest.mark.requirement("sandbox:writing")
def test_a_reader_writes_nothing_where_it_works_either(place: Place) -> None:
    place.sh("echo x > new", level=AccessLevel.READ)
    assert list(place.work.iterdir()) == []


@needs_bubblewrap
@pytest.mark.requirement("sandbox:network")
def test_it_has_the_network_where_it_shall_and_otherwise_none(place: Place) -> None:
    line = "tail -n +3 /proc/net/dev | cut -d: -f1"
    assert place.sh(line).split() == ["lo"]
    here = [each.split(":")[0].strip() for each in Path("/proc/net/dev").read_text().split("\n")]
    assert place.sh(line, network=True).split() == [each for each in here[2:] if each]
    assert place.sh("cat /etc/resolv.conf", network=True) == Path("/etc/resolv.conf").read_text()


@needs_bubblewrap
@pytest.mark.requirement("sandbox:processes")
def test_it_sees_no_process_but_its_own_and_has_no_capability(place: Place) -> None:
    said = place.sh("ls /proc | grep -c '^[0-9]'; grep CapEff /proc/self/status").split()
    assert int(said[0]) < 10
    assert said[-1].strip("0") == ""


@needs_bubblewrap
@pytest.mark.requirement("sandbox:view")
def test_the_programs_on_the_search_path_are_there_without_what_lies_beside_them(
    place: Place,
) -> None:
    tools, environment = place.home / ".tools" / "bin", place.home / "venv"
    for each in (tools, environment / "bin", environment / "lib"):
        each.mkdir(parents=True)
    (place.home / ".tools" / "password").write_text("hidden")
    (tools / "mine").write_text("#!/bin/sh\necho mine\n")
    (tools / "mine").chmod(0o755)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    path = f"/usr/bin:/bin:{tools}:{environment}/bin:{place.home}"

    said = place.sh(
        f"{tools}/mine; cat {place.home}/.tools/password {place.home}/.ssh/id; ls {environment}",
        path=path,
    )
    assert said.split() == ["mine", "bin", "lib", "pyvenv.cfg"]


@pytest.mark.requirement("sandbox:view")
def test_a_link_on_the_search_path_is_not_followed_unless_to_a_python(place: Place) -> None:
    environment = place.work / ".venv"
    environment.mkdir()
    (environment / "pyvenv.cfg").write_text("home = elsewhere\n")
    (environment / "bin").symlink_to(place.home / ".ssh")
    real = place.home / "pythons" / "3.11"
    for each in (real / "bin", real / "lib" / "python3.11", place.home / "tools"):
        each.mkdir(parents=True)
    (real / "bin" / "python3.11").write_text("")
    (real / "lib" / "python3.11" / "os.py").write_text("")
    (place.home / "tools" / "python").symlink_to(real / "bin" / "python3.11")
    (place.work / "python").symlink_to(place.home / ".ssh" / "id")

    seen = place.view(f"{environment}/bin:{place.home}/tools:{place.work}").visible
    assert not any(each.startswith(str(place.home / ".ssh")) for each in seen)
    assert f"{environment}/bin" not in seen
    assert str(real) in seen


@pytest.mark.requirement("sandbox:inherited")
@needs_bubblewrap
def test_a_directory_turned_into_a_link_leads_nowhere(place: Place) -> None:
    """What a child works in may be swapped by its parent between the spawn and the start."""
    (place.work / "below").symlink_to(place.home / ".ssh")
    whole = str(place.work)
    argv = sandbox.secluded(
        ["/bin/sh", "-c", "cat id; echo began"],
        cwd=f"{whole}/below",
        access=Access(level=AccessLevel.WRITE, network=False, below=whole, sees=whole),
        seclusion=place.view(),
        state_dir=place.state,
        hold=held,
    )
    done = process_group.run(list(argv), timeout_s=20)
    assert done.returncode != 0
    assert done.stdout == b""


@pytest.mark.requirement("sandbox:view")
@pytest.mark.parametrize("name", ["", "home", "state"])
def test_a_directory_that_holds_the_home_or_the_state_is_refused(place: Place, name: str) -> None:
    with pytest.raises(UsageError, match="would show") as refused:
        seclusion.check(str(place.home.parent / name), place.state)
    assert "--cwd" in (refused.value.hint or "")


@pytest.mark.requirement("sandbox:view")
def test_a_directory_that_became_a_link_since_the_spawn_is_refused(place: Place) -> None:
    (place.work / "link").symlink_to(place.home / ".ssh")
    with pytest.raises(UsageError, match="symbolic link"):
        seclusion.check(str(place.work / "link"), place.state)


@needs_bubblewrap
@pytest.mark.requirement("sandbox:program")
def test_a_program_that_is_not_there_in_the_sandbox_is_refused_with_the_way_out(
    place: Place,
) -> None:
    cwd = str(place.work)
    with pytest.raises(UsageError, match="not seen in there"):
        sandbox.secluded(
            [f"{place.home}/.ssh/id"],
            cwd=cwd,
            access=Access(level=AccessLevel.WRITE, below=cwd, sees=cwd),
            seclusion=place.view(),
            state_dir=place.state,
            hold=held,
        )


@pytest.mark.requirement("sandbox:refused")
def test_without_bubblewrap_the_flag_and_what_to_install_are_named() -> None:
    access = Access(level=AccessLevel.WRITE, below="/w", sees="/w")
    refusal = sandbox.unkept(access, "bubblewrap is not installed")
    assert "--isolation sandbox" in refusal.message
    assert "apt install bubblewrap" in (refusal.hint or "")


@pytest.mark.requirement("sandbox:view")
def test_a_worker_without_a_home_gets_one(place: Place) -> None:
    for home in ("", "/", "relative"):
        found = seclusion.of_worker(
            {"HOME": home}, search=(), socket=None, attempt=place.attempt, state_dir=place.state
        )
        assert found.home == seclusion.NO_HOME
