"""The images of deploy/Dockerfile, without Docker: what it says, and its steps in a directory."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from dockerfile_parse import DockerfileParser

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = ROOT / "deploy" / "Dockerfile"
IN_IMAGE: Final = "/opt/subagents"
LOOKS: Final = 300


class Step(NamedTuple):
    """One instruction of a Dockerfile."""

    word: str
    value: str


def stages() -> dict[str, list[Step]]:
    """Every stage by its name, with the steps of those that it is from."""
    found: dict[str, list[Step]] = {}
    steps: list[Step] = []
    for each in DockerfileParser(path=str(DOCKERFILE)).structure:
        step = Step(each["instruction"], each["value"])
        if step.word == "FROM":
            origin, _, name = step.value.split()
            steps = found[name] = [*found.get(origin, [])]
        elif step.word != "COMMENT":
            steps.append(step)
    return found


def last(stage: str, word: str) -> str:
    return [step.value for step in stages()[stage] if step.word == word][-1]


def context(folder: Path) -> Path:
    """What Docker would get of the checkout, in ``folder``."""
    ignore = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text("utf-8").splitlines()
    for pattern in (line[1:] for line in ignore if line.startswith("!")):
        for source in ROOT.glob(pattern):
            target = folder / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
    return folder


@pytest.mark.requirement("deploy:image")
@pytest.mark.parametrize("stage", ["single", "node"])
def test_an_image_is_of_no_superuser_keeps_its_home_and_says_whether_it_is_well(stage: str) -> None:
    variables = dict(each.split("=") for each in shlex.split(last(stage, "ENV")))

    assert last(stage, "USER") == "1000"
    assert last(stage, "VOLUME") == variables["SUBAGENTS_HOME"]
    assert last(stage, "HEALTHCHECK").endswith('CMD ["node-ready"]')
    assert variables["PATH"] == f"{IN_IMAGE}/bin:$PATH"


@pytest.mark.requirement("deploy:image")
def test_what_is_copied_is_in_the_checkout_and_every_extra_is_one(tmp_path: Path) -> None:
    sent = context(tmp_path)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    for steps in stages().values():
        for step in steps:
            words = shlex.split(step.value)
            if step.word == "COPY" and not words[0].startswith("--from"):
                names = [each for each in words[:-1] if not each.startswith("--")]
                assert all((sent / name).exists() for name in names), step.value
    assert last("build-node", "RUN").endswith(" '.[cluster,temporal,otel]'")
    assert {"cluster", "temporal", "otel"} <= project["optional-dependencies"].keys()


@pytest.fixture
def installed(short_path: Path) -> Path:
    """What the stage ``build`` leaves, below a directory."""
    (sent := short_path / "src").mkdir()
    place = short_path / "opt"
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = last("build", "RUN").replace(IN_IMAGE, str(place))
    done = subprocess.run(
        ["sh", "-c", script], cwd=context(sent), env=environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return place


@pytest.fixture
def served(installed: Path, short_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The first process of the image ``single``, which is no container, and its program."""
    words: list[str] = [
        *json.loads(last("single", "ENTRYPOINT")),
        *json.loads(last("single", "CMD")),
    ]
    init, separator, program, *arguments = words
    assert (init, separator) == ("tini", "--")
    environ = {"PATH": f"{installed}/bin:/usr/bin:/bin", "SUBAGENTS_HOME": str(short_path / "h")}
    process = subprocess.Popen(
        [installed / "bin" / program, *arguments], env=environ, cwd=short_path
    )
    try:
        yield process, installed / "bin" / program
    finally:
        process.kill()
        process.wait()


@pytest.mark.requirement("deploy:image")
def test_a_daemon_of_the_image_gets_healthy_runs_a_task_and_stops_when_told(
    served: tuple[subprocess.Popen[bytes], Path], short_path: Path
) -> None:
    process, program = served
    environ = {"PATH": f"{program.parent}:/usr/bin:/bin", "SUBAGENTS_HOME": str(short_path / "h")}
    check = [program.with_name("python"), ROOT / "deploy" / "node-ready.py"]

    looks = (
        subprocess.run(check, env=environ, capture_output=True, check=False).returncode
        for _ in range(LOOKS)
    )
    assert any(code == 0 for code in looks)
    done = subprocess.run(
        [program, "run", "echo hello"], env=environ, capture_output=True, text=True, check=False
    )
    process.terminate()

    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert process.wait(60) == 0
