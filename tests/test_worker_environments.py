"""What a worker finds in its environment."""

import asyncio
from pathlib import Path

import pytest
from tests.builders import Life, a_resolved
from tests.runtimes.attempt_harness import off_loop

from subagents.config.paths import Paths
from subagents.config.settings import SecretSource, Settings
from subagents.domain.run.secret_reference import OwnReference
from subagents.runtimes.provider_keys import ProviderKeys
from subagents.store.environment_files import EnvironmentFiles
from subagents.worker_environments import WorkerEnvironments, login_note


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


@pytest.mark.requirement("environment:secrets")
def test_what_an_extension_says_of_a_worker_is_no_reference_to_a_secret_unless_it_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A diffstat has names of files in it, which a worker chose.
    more = {"DIFFSTAT": "secret:stripe", "OURS": OwnReference("secret:github")}
    monkeypatch.setattr("subagents.extension.made", lambda *_: [("some", more)])
    source = SecretSource(command=("printf", "%s", "value-of-github"))
    environments = WorkerEnvironments(
        paths=Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)}),
        settings_now=lambda: Settings(secrets={"github": source}),
        brought=EnvironmentFiles(tmp_path),
        providers=ProviderKeys({}),
        asking=off_loop,
        environ={},
    )
    run = Life.begin().run

    asyncio.run(environments.secrets.load(run))
    found = environments.of_worker(run, lambda _: None)

    assert (found["DIFFSTAT"], found["OURS"]) == ("secret:stripe", "value-of-github")
    assert "value-of-github" in environments.secrets.known(run)
