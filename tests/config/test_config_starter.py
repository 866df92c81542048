"""What `subagents init` writes."""

from pathlib import Path

import pytest

from subagents.config import Config, Paths, load
from subagents.config.starter import PROGRAMS, detect, starter_text


def machine(root: Path, *programs: str) -> dict[str, str]:
    """A PATH with these programs and nothing else."""
    binaries = root / "bin"
    binaries.mkdir()
    for name in programs:
        (binaries / name).write_text("#!/bin/sh\nexit 1\n")
        (binaries / name).chmod(0o755)
    return {"PATH": str(binaries), "SUBAGENTS_HOME": str(root / "home")}


def loaded(text: str, environ: dict[str, str]) -> Config:
    paths = Paths.resolve(environ)
    paths.config_file.parent.mkdir(parents=True)
    paths.config_file.write_text(text, encoding="utf-8")
    return load(None, environ, paths=paths)


@pytest.mark.requirement("init:starter")
@pytest.mark.parametrize("is_available", [False, True])
def test_the_starter_file_loads_with_every_known_program_found(
    tmp_path: Path, *, is_available: bool
) -> None:
    environ = machine(tmp_path, "bash", *(program.name for program in PROGRAMS))
    runtimes = {program.runtime for program in PROGRAMS} if is_available else set()

    config = loaded(starter_text(environ, available=runtimes), environ)

    assert config.warnings == ()
    assert config.settings.defaults.agent == "command"
    assert config.settings.agent("command").command == ("bash", "-c", "{task}")
    kind = "acp" if is_available else "command"
    assert config.settings.agent("gemini").runtime == kind
    assert ("goose" in config.settings.agents) == is_available


@pytest.mark.requirement("init:no-shell-by-surprise")
def test_callers_may_use_the_programs_found_but_not_the_command_agent(tmp_path: Path) -> None:
    environ = machine(tmp_path, "claude", "codex", "opencode")
    text = starter_text(environ)

    allowed = loaded(text, environ).settings.agent("main").subagents.allow_agents

    assert allowed == ("claude", "codex")  # opencode runs any shell line unless told otherwise
    assert 'subagents.allow_agents = ["claude", "codex", "command"]' in text


@pytest.mark.requirement("init:starter")
def test_an_agent_without_its_runtime_reads_one_prompt_as_a_command(tmp_path: Path) -> None:
    environ = machine(tmp_path, "claude", "codex")

    settings = loaded(starter_text(environ), environ).settings

    assert {"claude", "codex"} <= set(settings.agents)
    assert settings.agent("claude").command == ("claude", "-p")
    for name in ("claude", "codex"):
        agent = settings.agent(name)
        assert (agent.runtime, agent.stdin) == ("command", "prompt")
        assert agent.command is not None
        assert "{task}" not in " ".join(agent.command), "a task could be an option"


@pytest.mark.requirement("init:starter")
def test_an_agent_that_cannot_work_yet_is_a_comment_and_allowed_to_nobody(
    tmp_path: Path,
) -> None:
    environ = machine(tmp_path, "goose")
    text = starter_text(environ)

    settings = loaded(text, environ).settings

    assert "# [agents.goose]" in text.splitlines()
    assert 'becomes available with a version that has\n# the runtime "acp"' in text
    assert "goose" not in settings.agents
    assert settings.agent("main").subagents.allow_agents == ()


@pytest.mark.requirement("init:starter")
def test_a_bare_machine_gets_sh_and_an_empty_allow_list(tmp_path: Path) -> None:
    environ = machine(tmp_path)

    settings = loaded(starter_text(environ), environ).settings

    assert detect(environ) == ()
    assert settings.agent("command").command == ("sh", "-c", "{task}")
    assert settings.agent("main").subagents.allow_agents == ()
