"""What a worker finds in its environment."""

import pytest
from tests.builders import Life, a_resolved

from subagents.worker_environments import login_note


@pytest.mark.requirement("environment:provider")
@pytest.mark.parametrize(
    ("runtime", "options", "environ", "says"),
    [
        ("claude-code", {}, {}, "started by codex at "),
        ("claude-code", {}, {"ANTHROPIC_API_KEY": "k"}, ""),
        ("claude-code", {}, {"CLAUDE_CODE_OAUTH_TOKEN": "k"}, ""),
        ("claude-code", {}, {"OPENAI_API_KEY": "k"}, "without ANTHROPIC_API_KEY"),
        ("codex", {}, {}, "without CODEX_API_KEY"),
        ("acp", {"agent": "gemini"}, {}, "without GEMINI_API_KEY"),
        ("acp", {"agent": "gemini"}, {"GOOGLE_API_KEY": "k"}, ""),
        ("acp", {"command": ["x"]}, {}, ""),
        ("command", {}, {}, ""),
    ],
)
def test_it_is_known_who_started_the_daemon_without_a_key(
    runtime: str,
    options: dict[str, object],
    environ: dict[str, str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SUBAGENTS_STARTED_BY", "codex")
    run = Life.begin(resolved=a_resolved(runtime=runtime, options=options)).run
    note = login_note(run, environ)
    assert bool(note) == bool(says)
    assert says in note
