"""The extension of docs/howto/own-extension.md works as it stands, from a wheel of its own."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from subagents.config.paths import Paths

PAGE: Final = Path(__file__).parents[1] / "docs" / "howto" / "own-extension.md"
BLOCK: Final = re.compile(r"```python\n# (acme_subagents/\w+\.py)\n(.*?)```", re.DOTALL)
POINTS: Final = re.compile(
    r"```text\n# pyproject.toml\n\[project.entry-points\.\"(.+?)\"\]\n(.*?)```", re.DOTALL
)
INFO: Final = "acme_subagents-1.0.dist-info"
LINES_MAX: Final = 80

Subagents = Callable[..., subprocess.CompletedProcess[str]]


def wheel(directory: Path, **instead: str) -> Path:
    """The page's package as a build leaves it; ``instead`` of the page's, modules by their name."""
    modules = dict(BLOCK.findall(PAGE.read_text("utf-8")))
    modules |= {f"acme_subagents/{name}.py": text for name, text in instead.items()}
    ((group, points),) = POINTS.findall(PAGE.read_text("utf-8"))
    points = points.replace('= "', "= ").replace('"\n', "\n")
    files = {
        **modules,
        f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: acme-subagents\nVersion: 1.0\n",
        f"{INFO}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{INFO}/entry_points.txt": f"[{group}]\n{points}",
    }
    files[f"{INFO}/RECORD"] = "".join(f"{name},,\n" for name in files)
    path = directory / "acme_subagents-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def beside(tmp_path: Path, package: Path) -> Iterator[Subagents]:
    """The program, with that wheel installed beside it; its daemon ends with the test."""
    site = tmp_path / "site"
    with zipfile.ZipFile(package) as archive:
        archive.extractall(site)
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env = {**kept, "SUBAGENTS_HOME": str(tmp_path / "home"), "PYTHONPATH": str(site)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "subagents", *words],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    try:
        yield run
    finally:
        run("down", "--yes")


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Subagents]:
    yield from beside(tmp_path, wheel(tmp_path))


@pytest.fixture(params=["ends", "settings"])
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subagents]:
    configured(tmp_path, file="ends.txt")
    module = {request.param: "raise ValueError('no licence here')\n"}
    yield from beside(tmp_path, wheel(tmp_path, **module))


def configured(tmp_path: Path, **settings: str) -> Paths:
    """The home of ``beside``, with what its file says of the extension."""
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path / "home")})
    paths.config_file.parent.mkdir(parents=True)
    rows = "".join(f'{name} = "{value}"\n' for name, value in settings.items())
    paths.config_file.write_text(f"[acme]\n{rows}")
    return paths


@pytest.mark.requirement("extensions:own")
def test_the_documented_extension_adds_its_command_route_follower_and_variable(
    acme: Subagents, tmp_path: Path
) -> None:
    assert "acme ends" in acme("help", "all").stdout
    paths = configured(tmp_path, file="ends.txt")
    ran = acme("run", "--agent", "command", "echo I am $ACME_RUN")
    assert ran.returncode == 0, ran.stderr
    run_id = ran.stdout.split()[-1]
    assert acme("show", run_id).returncode == 0

    for _ in range(100):
        shown = acme("acme", "ends")
        assert shown.returncode == 0, shown.stderr
        if shown.stdout:
            break
    assert shown.stdout == f"{run_id} ok\n"
    assert (paths.state_dir / "ends.txt").read_text() == shown.stdout


@pytest.mark.requirement("extensions:own")
def test_one_that_breaks_keeps_nothing_else_from_working_and_doctor_says_so(
    broken: Subagents,
) -> None:
    ran = broken("run", "--agent", "command", "echo still here")
    assert (ran.returncode, ran.stdout) == (0, "still here\n"), ran.stderr
    assert broken("acme", "ends").returncode != 0
    told = broken("doctor").stdout
    assert "extension 'acme' does not wholly work: acme_subagents." in told
    assert "correct or uninstall acme-subagents 1.0" in told


@pytest.mark.requirement("extensions:own")
def test_doctor_says_what_one_adds_and_which_of_its_commands_is_anothers(tmp_path: Path) -> None:
    init = dict(BLOCK.findall(PAGE.read_text("utf-8")))["acme_subagents/__init__.py"]
    package = "extension 'acme' of acme-subagents 1.0: "
    with contextmanager(beside)(tmp_path, wheel(tmp_path)) as acme:
        adds = "commands, parents, settings, routes, followers, worker_env"
        assert f"{package}{adds}\n" in acme("doctor").stdout

    bare = re.sub(r" +parents=.*\n", "", init)
    more = bare.replace(
        '(Command("', '(Command("list", "acme_subagents.ends:ends", ""), Command("', 1
    )
    # Where no bytecode of the other is, which may be as long and of the same second.
    (apart := tmp_path / "apart").mkdir()
    with contextmanager(beside)(apart, wheel(apart, __init__=more)) as acme:
        assert f"{package}there is another `list`" in acme("doctor").stdout
        assert "What an extension adds.\n\n  ends " in acme("acme").stdout


BROKEN: Final = """

def out_of_order(*_):
    raise ValueError("out of order")


Ends.{method} = out_of_order
"""


@pytest.mark.requirement("extensions:own")
@pytest.mark.parametrize("method", ["start", "on_commit"])
def test_a_follower_of_anothers_that_breaks_breaks_no_start_and_no_commit(
    tmp_path: Path, method: str
) -> None:
    ends = dict(BLOCK.findall(PAGE.read_text("utf-8")))["acme_subagents/ends.py"]
    package = wheel(tmp_path, ends=ends + BROKEN.format(method=method))

    with contextmanager(beside)(tmp_path, package) as acme:
        ran = acme("run", "--agent", "command", "echo still here")
        assert (ran.returncode, ran.stdout) == (0, "still here\n"), ran.stderr

    (log,) = (tmp_path / "home").rglob("daemon.log")
    assert "the extension acme " in log.read_text("utf-8")


@pytest.mark.requirement("extensions:own")
def test_the_documented_extension_is_as_short_as_promised() -> None:
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))

    assert sum(len(text.splitlines()) for _, text in blocks) <= LINES_MAX
