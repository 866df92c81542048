"""The command that adds an extra is one for the installation that lacks it."""

import json
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest

from subagents.installation import PIPX_METADATA, UV_RECEIPT, extra_command


@pytest.fixture(autouse=True)
def checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is of a checkout."""
    installed_from(monkeypatch, {"url": "file:///my%20checkout", "dir_info": {}})


def installed_from(monkeypatch: pytest.MonkeyPatch, direct: dict[str, object] | None) -> None:
    def read(_distribution: Distribution, name: str) -> str | None:
        return json.dumps(direct) if name == "direct_url.json" and direct else None

    monkeypatch.setattr("importlib.metadata.PathDistribution.read_text", read)


@pytest.mark.requirement("package:extras")
def test_a_tool_of_uv_keeps_the_extras_that_it_has(tmp_path: Path) -> None:
    (tmp_path / UV_RECEIPT).write_text(
        '[tool]\nrequirements = [{ name = "subagents", extras = ["notify"], directory = "/x" }]\n'
    )
    command = extra_command("jq", prefix=str(tmp_path))
    assert command == "uv tool install '/my checkout[jq,notify]'"

    (tmp_path / UV_RECEIPT).write_text("no receipt")
    assert extra_command("jq", prefix=str(tmp_path)) == "uv tool install '/my checkout[jq]'"


@pytest.mark.requirement("package:extras")
def test_a_program_of_pipx_gets_it_into_its_environment(tmp_path: Path) -> None:
    (tmp_path / PIPX_METADATA).touch()
    command = extra_command("jq", prefix=str(tmp_path))
    assert command == "pipx runpip subagents install '/my checkout[jq]'"


@pytest.mark.requirement("package:extras")
@pytest.mark.parametrize(
    ("has_pip", "program"),
    [
        (True, f"{shlex.quote(sys.executable)} -m pip install"),
        (False, f"uv pip install --python {shlex.quote(sys.executable)}"),
    ],
)
def test_any_other_environment_gets_it_by_pip_or_by_uv_where_it_has_no_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, *, has_pip: bool
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object() if has_pip else None)
    assert extra_command("jq", prefix=str(tmp_path)) == f"{program} '/my checkout[jq]'"


@pytest.mark.requirement("package:extras")
@pytest.mark.parametrize(
    ("direct", "source"),
    [
        (None, "'subagents[jq]'"),
        ({"url": "file:///co", "dir_info": {"editable": True}}, "-e '/co[jq]'"),
        (
            {"url": "https://host/it", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "'subagents[jq] @ git+https://host/it'",
        ),
        ({"url": "https://host/it.whl"}, "'subagents[jq] @ https://host/it.whl'"),
    ],
)
def test_it_is_installed_from_where_the_package_is_from(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    direct: dict[str, object] | None,
    source: str,
) -> None:
    installed_from(monkeypatch, direct)
    assert extra_command("jq", prefix=str(tmp_path)).endswith(f"install {source}") or (
        extra_command("jq", prefix=str(tmp_path)).endswith(f"{sys.executable} {source}")
    )


@pytest.mark.requirement("package:extras")
def test_sources_that_were_never_installed_have_a_command_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_name: str) -> Distribution:
        raise PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.distribution", none)
    assert extra_command("jq", prefix=str(tmp_path)).endswith("'subagents[jq]'")
