"""The options of a Codex agent."""

from typing import Any

import pytest
from tests.extensions.codex.codex_folds import CODEX, opening
from tests.extensions.conversation.folds import Document

from subagents.errors import ConfigError
from subagents.extensions.codex.codex_config import UserConfig, thread_params
from subagents.extensions.codex.codex_options import parse_options


@pytest.mark.requirement("codex:options")
def test_options_become_codexs_own_keys_and_ours_win() -> None:
    options = parse_options(
        {
            "network": True,
            "writable": [".git", "/var/cache"],
            "config": {"model_provider": "mine", "features.x": 1, "features.shell_snapshot": True},
        }
    )
    config: Any = thread_params(opening(), options, UserConfig())["config"]

    assert config["sandbox_workspace_write"] == {
        "network_access": True,
        "writable_roots": ["/home/ada/project/.git", "/var/cache"],
    }
    assert config["model_provider"] == "mine"
    assert config["features"]["x"] == 1
    assert config["features"]["shell_snapshot"] is False
    assert "code_mode" in config["features"]


@pytest.mark.requirement("codex:options")
@pytest.mark.parametrize(
    ("options", "output"),
    [
        ({"sandbx": "read-only"}, "did you mean `sandbox`"),
        ({"sandbox": "none"}, "danger-full-access|sandbox"),
        ({"config": {"approval_policy": "on-request"}}, "with the option `ask`"),
        ({"config": {"mcp_servers": {"subagents": {}}}}, "our own tools"),
        ({"sandbox": "read-only", "network": True}, "have no effect"),
        ({"prices": {"input": 1}}, "output"),
        ({"env": {"SUBAGENTS_TOKEN": "x"}}, "SUBAGENTS_TOKEN"),
        ({"command": [""]}, "begin with a program"),
    ],
)
def test_options_that_cannot_be_are_refused_with_their_name(options: Document, output: str) -> None:
    with pytest.raises(ConfigError, match=output):
        CODEX.check(options)
