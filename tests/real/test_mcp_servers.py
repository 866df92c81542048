"""Real programs with the MCP servers that their agent names, and none of their user's own."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.e2e.program_setups import ProgramSetup
from tests.e2e.scripted_model import Use
from tests.e2e.served_worker import FOREIGN, SECRET, Served
from tests.e2e.small_mcp_server import digest
from tests.real.acp_programs import SETUPS
from tests.real.codex_setup import CODEX

pytestmark = pytest.mark.timeout(180)


def in_codex(own: Path, _home: Path) -> None:
    with (own / "codex" / "config.toml").open("a") as file:
        command, args = json.dumps(FOREIGN["command"]), json.dumps(FOREIGN["args"])
        file.write(f"[mcp_servers.foreign]\ncommand = {command}\nargs = {args}\n")
        # Of the same name as one of the agent's.
        file.write('[mcp_servers.far]\nurl = "http://127.0.0.1:9/mcp"\n')


def in_claude(own: Path, _home: Path) -> None:
    file = own / "claude" / ".claude.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({**known, "mcpServers": {"foreign": FOREIGN}}))


def in_settings(folder: str) -> Callable[[Path, Path], None]:
    def plant(_own: Path, home: Path) -> None:
        (home / folder).mkdir(exist_ok=True)
        (home / folder / "settings.json").write_text(
            json.dumps({"mcpServers": {"foreign": FOREIGN}})
        )

    return plant


class Row(NamedTuple):
    setup: ProgramSetup
    plant: Callable[[Path, Path], None]
    calls: Sequence[Use]


def hidden(*names: str) -> Sequence[Use]:
    """Calls of tools that the program shows only to a model that searches for them."""
    return [Use(name, is_declared=False) for name in names]


SHOWN: Final = "features.code_mode.direct_only_tool_namespaces"
"""What Codex shows without a search."""
ALL: Final = [f"mcp__{name}" for name in ("subagents", "scales", "far", "far_2", "foreign")]
ROWS: Final[Mapping[str, Row]] = {
    # What it has under the same name is merged with ours: ours has another one there.
    "codex": Row(
        replace(CODEX, options={**CODEX.options, "config": {SHOWN: ALL}}),
        in_codex,
        [Use("scales__weigh"), Use("far_2__weigh")],
    ),
    "claude-agent-acp": Row(
        SETUPS["claude-agent-acp"], in_claude, hidden("mcp__scales__weigh", "mcp__far__weigh")
    ),
    "gemini": Row(
        SETUPS["gemini"], in_settings(".gemini"), [Use("scales_weigh"), Use("far_weigh")]
    ),
    "qwen": Row(SETUPS["qwen"], in_settings(".qwen"), [Use("scales__weigh"), Use("far__weigh")]),
}


@pytest.mark.requirement("real:mcp-servers")
@pytest.mark.parametrize("name", ROWS)
def test_it_has_the_servers_of_its_agent_and_none_of_its_users(name: str, tmp_path: Path) -> None:
    setup, plant, calls = ROWS[name]
    if (why := setup.missing()) is not None:
        pytest.skip(why)

    served = Served(setup, tmp_path, plant, calls=calls)

    assert f"weighed {digest(SECRET)}." in served.told
    assert f"weighed {digest('Bearer ' + SECRET)}." in served.told
    assert "foreign" not in served.shown
    assert "scales" not in served.alone
    assert not served.files
