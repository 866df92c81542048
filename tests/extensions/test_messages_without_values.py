"""What is wrong with a file that somebody wrote is said without a part of it, whoever reads it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from subagents.cli.runs.environment_flags import environment
from subagents.cli.runs.spawn_flags import read_schema
from subagents.config import layers
from subagents.config.files.text_files import read_text
from subagents.config.paths import Paths
from subagents.errors import SubagentsError
from subagents.extensions.install import (
    codex_registration,
    file_change,
    foreign_agents,
    import_commands,
)
from subagents.extensions.plans.plan_file import read_plan

SECRET: Final = "Tm90QVJlYWxLZXk5OTk5"
HOME: Final[Mapping[str, str]] = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}

BROKEN: Final = (
    "{0}", "{0}\n{0}\n", '"{0}', "'{0}", "a = {0}", 'a = "{0}', "a: '{0}", "a: {0}: {0}",
    "a: {0}\na: {0}", "A='{0}", 'A="{0}" {0}', "A={0}\n{0}", "A: {0}", '{{"a": {0}}}', "[{0}",
    '{{"runs": "{0}"}}', 'runs = "{0}"', "runs: {0}", "runs:\n- {0}", '[1, "{0}"]',
    '[{{"task": ["{0}"]}}]',
    'budget = "{0}"\n[[runs]]\ntask = "x"', '[[runs]]\ntask = "x"\nenv = "{0}"',
    '[[runs]]\ntask = "x"\n[runs.env]\n"A B" = "{0}"', '[[runs]]\ntask = "x"\nretry = "{0}"',
    '[[runs]]\ntask = "x"\nretry_count = "{0}"', '[vars]\na = ["{0}"]\n[[runs]]\ntask = "x"',
    '[[runs]]\ntask = "x"\nmatrix = "{0}"', '[[runs]]\ntask = "x"\nmatrix = {{ a = "{0}" }}',
    '[daemon]\nstore = "mysql://u:{0}@h/d"', '[threads]\ntoken = "{0} {0}"',
    '[agents.a]\nenv = "{0}"', "[agents.a.env]\nA = ['{0}']", '[agents.a]\ncommand = "curl {0}"',
    '[agents.a.courier]\nwebhook = "https://u:{0}@h"', '[secrets.a]\ncommand = "echo {0}"',
    '[telemetry]\nendpoint = "https://u:{0}@h"', '[telemetry]\nheaders = "{0}"',
    '[telemetry.headers]\na = ["{0}"]', '[notifications.a]\nurl = "{0}"',
    "a = '{0}'\n\0", "\ufeff{0}", "a = 1\r{0}", "---\n{0}\n---\n", "\x1b[31m{0}",
)  # fmt: skip


def _config(file: Path) -> object:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(file.parent / "h")})
    file.rename(file.parent / "subagents.toml")
    return layers.load(file.parent, HOME, paths=paths)


def _plan(suffix: str) -> Callable[[Path], object]:
    return lambda file: read_plan(file.rename(file.with_suffix(suffix)))


def _imported(file: Path) -> object:
    text = read_text(file, bytes_max=10_000)
    found = foreign_agents.claude_agents({"a.md": text, "b.md": f"---\n{text}\n---\n"})
    # What becomes of a description is in the agents; here is what is said about it.
    for line in (*found.left_out, *found.unmapped, *found.changed):
        assert SECRET not in line
    return found


READERS: Final[dict[str, Callable[[Path], object]]] = {
    "subagents.toml": _config,
    "plan.toml": _plan(".toml"),
    "plan.yaml": _plan(".yaml"),
    "plan.json": _plan(".json"),
    "--env-file": lambda file: environment((), (str(file),), {}),
    "--schema": lambda file: read_schema(str(file)),
    "init --from openclaw": lambda file: import_commands.openclaw(
        file, yes=False, dry_run=True, json=False
    ),
    "init --from claude-agents": _imported,
    "codex's configuration": lambda file: codex_registration._parsed(file_change.read(file) or ""),
}


@pytest.mark.requirement("files:no-value-in-a-message")
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("form", BROKEN)
def test_no_message_about_a_file_has_a_part_of_it(
    tmp_path: Path, reader: Callable[[Path], object], form: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(form.format(SECRET).encode())
    refused: SubagentsError | None = None
    try:
        reader(file)
    except SubagentsError as error:
        refused = error
    assert refused is None or SECRET not in f"{refused.message} {refused.hint} {refused.details}"
