"""What `make release` leaves: sums that match, and files that are the installed program's."""

import importlib.metadata
import json
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from packaging.requirements import Requirement
from scripts import man_page, release

from subagents.cli.completion import SCRIPTS
from subagents.config.schema import json_schema
from subagents.extensions.plans.plan_schema import plan_schema

ROOT: Final = Path(__file__).parents[1]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


class Made(NamedTuple):
    """A release and the environment that it was made with."""

    out: Path
    venv: Path

    def text(self, name: str) -> str:
        return (self.out / name).read_text("utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A release of this checkout; installing its wheel asks the package index."""
    made = Made(tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("made") / "venv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        release.release(*made)
    return made


def installed(venv: Path) -> Mapping[str, str]:
    """The version of each distribution there, by its normal name."""
    (packages,) = venv.glob("lib/python*/site-packages")
    return {
        normal(each.name): each.version
        for each in importlib.metadata.distributions(path=[str(packages)])
    }


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.requirement("release:sums")
def test_the_sums_name_each_file_of_a_release_and_match(made: Made) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", release.SUMS],
        cwd=made.out,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    version = PROJECT["project"]["version"]
    assert {line.partition(":")[0] for line in done.stdout.splitlines()} == {
        f"subagents-{version}-py3-none-any.whl",
        f"subagents-{version}.tar.gz",
        f"subagents-{version}.cdx.json",
        "subagents.1",
        *release.PRINTED,
        *([release.CATALOG] if "urls" in PROJECT["project"] else []),
    }
    assert {each.name for each in made.out.iterdir()} == {
        release.SUMS,
        *(line.partition(":")[0] for line in done.stdout.splitlines()),
    }


@pytest.mark.requirement("release:sbom")
def test_the_bill_of_materials_names_what_is_installed_with_its_version(made: Made) -> None:
    (file,) = made.out.glob("*.cdx.json")
    bill = json.loads(file.read_text("utf-8"))
    root = bill["metadata"]["component"]
    named = {normal(each["name"]): each["version"] for each in (root, *bill["components"])}

    assert named == installed(made.venv)
    for text in PROJECT["project"]["dependencies"]:
        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate():
            assert wanted.specifier.contains(named[normal(wanted.name)]), text
    assert str(made.venv) not in file.read_text("utf-8")


@pytest.mark.requirement("release:texts")
def test_manual_page_completions_and_schemas_are_those_of_the_program(made: Made) -> None:
    assert made.text("subagents.1") == man_page.page()
    assert made.text("subagents.bash") == SCRIPTS["bash"]
    assert made.text("_subagents") == SCRIPTS["zsh"]
    assert made.text("subagents.fish") == SCRIPTS["fish"]
    assert json.loads(made.text("subagents.schema.json")) == json_schema()
    assert json.loads(made.text("plan.schema.json")) == json.loads(json.dumps(plan_schema()))


@pytest.mark.requirement("release:reproducible")
def test_the_packages_of_a_commit_are_the_same_bytes_whenever_they_are_built(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)

    release.build(tmp_path / "again", release.dated())

    for each in (tmp_path / "again").iterdir():
        assert each.read_bytes() == (made.out / each.name).read_bytes(), each.name


@pytest.mark.requirement("release:catalog")
def test_the_catalog_names_a_schema_that_a_release_has_for_each_kind_of_file() -> None:
    found: Any = release.catalog("https://forge.example/us/subagents")["schemas"]

    base = "https://forge.example/us/subagents/releases/latest/download/"
    assert {each["url"].removeprefix(base) for each in found} == {
        name for name in release.PRINTED if name.endswith(".schema.json")
    }
    assert [each["fileMatch"] for each in found] == [
        ["subagents.toml"],
        [f"*.subagents.{suffix}" for suffix in ("toml", "yaml", "yml", "json")],
    ]


@pytest.mark.requirement("release:address")
def test_one_page_leaves_the_address_of_the_repository_open_and_none_once_it_has_one() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "run").iterdir()]
    found = {each.name for each in pages if re.search(r"\bOWNER\b", each.read_text("utf-8"))}

    assert found == (set() if "urls" in PROJECT["project"] else {"ci.md"})
    (rule,) = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    assert ("://" in rule["replacement"]) == ("urls" in PROJECT["project"])
