"""What a caller's shell brings for workers, and what is refused of it."""

import pytest

from subagents.domain.run.caller_environment import (
    CallerEnvironment,
    ProcessSettings,
    in_place_of,
    over_daemons,
    require_usable,
)
from subagents.domain.run.shell_variables import is_login, provider_variables, shell_variables
from subagents.errors import UsageError

SHELL = {
    "PATH": "/venv/bin:/bin",
    "VIRTUAL_ENV": "/venv",
    "LC_TIME": "C",
    "NO_COLOR": "1",
    "https_proxy": "http://proxy:3128",
    "SSH_AUTH_SOCK": "/run/agent",
}


@pytest.mark.requirement("environment:shell")
def test_path_environment_locale_terminal_proxies_and_ssh_agent_come_along_and_nothing_else() -> (
    None
):
    others = {"HOME": "/root", "FOO": "bar", "OPENAI_API_KEY": "k", "PYTHONPATH": "/x"}
    assert shell_variables({**SHELL, **others}) == SHELL


@pytest.mark.requirement("environment:agents")
def test_a_worker_has_no_shell_to_bring() -> None:
    assert shell_variables({**SHELL, "SUBAGENTS_RUN_ID": "r-1"}) == {}


@pytest.mark.requirement("environment:shell")
def test_the_shell_stands_in_for_the_daemon_and_the_agents_section_for_both() -> None:
    daemon = {"PATH": "/daemon", "LANG": "de_DE", "HOME": "/root"}
    brought = CallerEnvironment(shell={"PATH": "/shell", "TERM": "xterm"})

    assert over_daemons(brought, daemon, {"TERM": "dumb"}) == {"PATH": "/shell", "LANG": None}
    assert over_daemons(CallerEnvironment(given={"A": "1"}), daemon, {}) == {}


@pytest.mark.requirement("environment:given")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"A B": "1"}, "'A B' is no name"),
        ({"": "1"}, "is no name"),
        ({"SUBAGENTS_TOKEN": "x"}, "belongs to subagents"),
        ({"A": "secret\0value"}, "the value of A is too long or holds a NUL"),
        ({"A": "x" * 131_072}, "the value of A is too long"),
        ({"A": "secret:hidden word"}, "A: what follows `secret:` is no name"),
        ({f"V{n}": "" for n in range(1_001)}, "more than 1000 variables"),
        ({f"V{n}": "x" * 100_000 for n in range(3)}, "more than 262,144 bytes"),
    ],
)
def test_what_no_worker_can_be_given_is_refused_without_its_value(
    given: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        require_usable(CallerEnvironment(given=given))
    assert "secret\0" not in str(refused.value)
    assert "hidden" not in str(refused.value)


@pytest.mark.requirement("environment:process")
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (ProcessSettings(umask=0o1000), "umask must be"),
        (ProcessSettings(umask=-1), "umask must be"),
        (ProcessSettings(nice=20), "nice must be"),
        (ProcessSettings(nice=-21), "nice must be"),
        (ProcessSettings(processors=(0, -1)), "processors are 0 to"),
        (ProcessSettings(processors=(9_999,)), "processors are 0 to"),
        (ProcessSettings(processors=(0,) * 9_000), "more than 8192 processors"),
        (ProcessSettings(limits={"nofile=1 x": (1, 1)}), "there is no limit 'nofile=1 x'"),
        (ProcessSettings(limits={"nofile": (-2, 1)}), "nofile must be two numbers"),
        (ProcessSettings(limits={"as": (1, 2**63)}), "as must be two numbers"),
    ],
)
def test_what_no_process_can_be_run_like_is_refused(settings: ProcessSettings, says: str) -> None:
    assert says in str(CallerEnvironment(process=settings).problem())


@pytest.mark.requirement("environment:process")
@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (ProcessSettings(), "umask=0022 priority=0"),
        (ProcessSettings(umask=0, nice=-5), "umask=0000 priority=-5"),
        (ProcessSettings(processors=(0, 3)), "umask=0022 priority=0 processors=0,3"),
        (
            ProcessSettings(limits={"nice": (0, 20), "as": (-1, -1)}),
            "umask=0022 priority=0 nice=0:20 as=-1:-1",
        ),
    ],
)
def test_how_a_worker_is_to_run_is_one_line(settings: ProcessSettings, line: str) -> None:
    assert settings.line == line


@pytest.mark.requirement("environment:process")
def test_how_processes_run_is_brought_although_there_are_no_variables() -> None:
    assert CallerEnvironment().is_empty
    assert not CallerEnvironment(process=ProcessSettings()).is_empty
    assert CallerEnvironment(process=ProcessSettings()).names == ()


DAEMON = {"ANTHROPIC_API_KEY": "daemon", "ANTHROPIC_BASE_URL": "http://daemon", "HOME": "/h"}


@pytest.mark.requirement("environment:provider")
@pytest.mark.parametrize(
    ("provider", "configured", "found"),
    [
        pytest.param({}, {}, {}, id="a caller with none leaves the daemon's"),
        pytest.param(
            {"ANTHROPIC_API_KEY": "mine"},
            {},
            {"ANTHROPIC_API_KEY": "mine", "ANTHROPIC_BASE_URL": None},
            id="a key does not go to the daemon's address",
        ),
        pytest.param(
            {"ANTHROPIC_AUTH_TOKEN": "mine", "ANTHROPIC_BASE_URL": "http://mine"},
            {},
            {
                "ANTHROPIC_AUTH_TOKEN": "mine",
                "ANTHROPIC_BASE_URL": "http://mine",
                "ANTHROPIC_API_KEY": None,
            },
            id="another kind of login takes the daemon's away",
        ),
        pytest.param(
            {"ANTHROPIC_MODEL": "x", "ANTHROPIC_BASE_URL": "http://mine"},
            {},
            {},
            id="an address alone is no login, and the daemon's key does not go there",
        ),
        pytest.param(
            {"OPENAI_API_KEY": "mine"}, {}, {}, id="a key of another program is none of its"
        ),
        pytest.param(
            {"ANTHROPIC_API_KEY": "mine"},
            {"ANTHROPIC_API_KEY": "secret:team"},
            {},
            id="an agent with a login of its own",
        ),
        pytest.param(
            {"ANTHROPIC_API_KEY": "mine", "ANTHROPIC_MODEL": "mine"},
            {"ANTHROPIC_MODEL": "agents"},
            {"ANTHROPIC_API_KEY": "mine", "ANTHROPIC_BASE_URL": None},
            id="what the agent's own section says beside the login is stronger",
        ),
        pytest.param(
            {"CLAUDE_CODE_USE_BEDROCK": "1"},
            {},
            {
                "CLAUDE_CODE_USE_BEDROCK": "1",
                "ANTHROPIC_API_KEY": None,
                "ANTHROPIC_BASE_URL": None,
            },
            id="a cloud's own login",
        ),
    ],
)
def test_a_program_asks_its_provider_as_its_caller_does_or_as_the_daemon_does(
    provider: dict[str, str], configured: dict[str, str], found: dict[str, str | None]
) -> None:
    brought = CallerEnvironment(provider=provider)

    def passes(name: str) -> bool:
        return name.startswith(("ANTHROPIC_", "CLAUDE_"))

    assert in_place_of(brought, DAEMON, configured, passes) == found


@pytest.mark.requirement("environment:provider")
def test_the_variables_of_providers_come_along_from_a_person_and_none_from_a_worker() -> None:
    brought = {"ANTHROPIC_API_KEY": "a", "CODEX_HOME": "/c", "GEMINI_API_KEY": "g", "QWEN_X": "q"}
    others = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION": "s", "AWS_SECRET_ACCESS_KEY": "s"}
    nothing = {"GITHUB_TOKEN": "t", "OPENAI_API_KEY": "", "GOOGLE_API_KEY": "\udcff"}
    environ = {**brought, **others, **nothing}
    assert provider_variables(environ) == brought
    assert provider_variables({**environ, "SUBAGENTS_RUN_ID": "r-1"}) == {}


@pytest.mark.requirement("environment:provider")
@pytest.mark.parametrize(
    ("name", "says_who"),
    [
        ("ANTHROPIC_API_KEY", True),
        ("ANTHROPIC_AUTH_TOKEN", True),
        ("CLAUDE_CODE_OAUTH_TOKEN", True),
        ("CLAUDE_CODE_USE_VERTEX", True),
        ("GOOGLE_GENAI_USE_VERTEXAI", True),
        ("CODEX_HOME", True),
        ("CLAUDE_CONFIG_DIR", True),
        ("GOOSE_PROVIDER", True),
        ("ANTHROPIC_BASE_URL", False),
        ("ANTHROPIC_MODEL", False),
        ("OPENAI_ORGANIZATION", False),
        ("CODEX_CA_CERTIFICATE", False),
    ],
)
def test_a_login_is_what_says_as_whom_a_provider_is_asked(
    name: str,
    says_who: bool,  # noqa: FBT001
) -> None:
    assert is_login(name) is says_who
