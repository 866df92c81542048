"""What a project's file may say to agents: define and narrow, never widen."""

import os
from pathlib import Path

import pytest

from subagents.config.layers import Config, ConfigCache, load
from subagents.config.paths import Paths
from subagents.config.settings import (
    Agent,
    AgentAlerts,
    AgentCourier,
    AgentIsolation,
    AgentLimits,
    AgentSubagents,
    Capabilities,
    LaneSettings,
    Settings,
    Stdin,
    SubagentDefaults,
)
from subagents.config.trust import narrowed, trust
from subagents.domain.rules.admission import check_allowed
from subagents.domain.run.access import AccessLevel
from subagents.domain.run.alert import AlertKind
from subagents.domain.run.spec import Network
from subagents.errors import ConfigError, Forbidden

USER = """
[agents.defaults.subagents]
max_children_per_agent = 5
run_timeout_seconds = 60

[agents.main]
subagents.allow_agents = ["*"]

[agents.reader]
runtime = "command"
command = ["cat"]
tools = ["Read", "Grep"]
subagents.allow_agents = ["reader", "main"]

[lanes.heavy]
slots = 2
"""


class ConfigHome:
    """A home with its user file, and a project directory with its own."""

    def __init__(self, root: Path) -> None:
        self.environ = {"PATH": os.environ["PATH"], "SUBAGENTS_HOME": str(root / "home")}
        self.paths = Paths.resolve(self.environ)
        self.paths.config_file.parent.mkdir(parents=True)
        self.paths.config_file.write_text(USER)
        self.project = root / "project" / "subagents.toml"
        self.project.parent.mkdir()

    def load(self) -> Config:
        return load(self.project.parent, self.environ, paths=self.paths)

    def for_agents(self, project: str) -> Config:
        self.project.write_text(project)
        return self.load().for_agents()

    def ignored(self, project: str) -> str:
        (line,) = self.for_agents(project).ignored
        assert line.startswith(f"{self.project}: ignored for agents: ")
        assert line.endswith(f"to allow it: subagents config --trust {self.project})")
        return line.removeprefix(f"{self.project}: ignored for agents: ").partition(" (")[0]


@pytest.fixture
def home(tmp_path: Path) -> ConfigHome:
    return ConfigHome(tmp_path)


def may_spawn(settings: Settings, wanted: str, *, caller: str = "main") -> bool:
    allowed = settings.agent(caller).subagents.allow_agents
    try:
        check_allowed(wanted, requester_agent=caller, allow_agents=allowed)
    except Forbidden:
        return False
    return True


EVIL = '[agents.evil]\nruntime = "command"\ncommand = ["sh", "-c", "{task}"]\n'


@pytest.mark.requirement("trust:added-agent")
def test_an_agent_that_only_the_project_defines_is_spawnable_only_when_the_user_names_it(
    home: ConfigHome,
) -> None:
    settings = home.for_agents(EVIL).settings

    assert settings.agent("evil").command == ("sh", "-c", "{task}")
    assert not may_spawn(settings, "evil")  # "*" does not mean it
    assert may_spawn(settings, "reader")
    assert may_spawn(home.load().settings, "evil")  # a person's own hand

    named = USER.replace('allow_agents = ["*"]', 'allow_agents = ["evil"]')
    home.paths.config_file.write_text(named)
    assert may_spawn(home.load().for_agents().settings, "evil")


@pytest.mark.requirement("trust:allow-agents")
@pytest.mark.parametrize(
    ("agent", "given", "is_kept"),
    [
        ("main", '["reader"]', True),
        ("main", "[]", True),
        ("main", '["*", "evil"]', False),
        ("main", '["evil"]', False),
        ("reader", '["reader"]', True),
        ("reader", '["command"]', False),
        ("reader", '["*"]', False),
        ("command", '["reader"]', False),
    ],
)
def test_allow_agents_can_be_narrowed_and_never_widened(
    home: ConfigHome,
    agent: str,
    given: str,
    is_kept: bool,  # noqa: FBT001 - a case of the table
) -> None:
    config = home.for_agents(f"{EVIL}[agents.{agent}.subagents]\nallow_agents = {given}\n")

    assert bool(config.ignored) != is_kept
    if not is_kept:
        assert f"agents.{agent}.subagents.allow_agents" in config.ignored[0]
    assert not may_spawn(config.settings, "evil", caller=agent)
    if given == "[]":
        assert not may_spawn(config.settings, "reader", caller=agent)


@pytest.mark.requirement("trust:allow-agents")
def test_an_agent_of_the_project_may_spawn_nobody(home: ConfigHome) -> None:
    project = f'{EVIL}subagents.allow_agents = ["*"]\n'

    assert home.ignored(project) == "agents.evil.subagents.allow_agents"
    assert not may_spawn(home.load().for_agents().settings, "command", caller="evil")


@pytest.mark.requirement("trust:limits")
def test_limits_are_lowered_by_a_project_and_never_raised(home: ConfigHome) -> None:
    table = "[agents.defaults.subagents]\n"
    raised = "max_spawn_depth = 9\nmax_children_per_agent = 6\nmax_concurrent = 99\n"
    without = "run_timeout_seconds = 0\n"
    lanes = "[lanes.heavy]\nslots = 3\n[lanes.mine]\nslots = 500\n"

    config = home.for_agents(f"{table}{raised}{without}{lanes}")
    defaults = config.settings.defaults
    assert (defaults.max_spawn_depth, defaults.max_children_per_agent) == (1, 5)
    assert (defaults.max_concurrent, defaults.run_timeout_seconds) == (8, 60)
    assert config.settings.lanes == {"heavy": LaneSettings(slots=2), "mine": LaneSettings(slots=8)}
    for key in ("max_spawn_depth", "max_children_per_agent", "max_concurrent"):
        assert f"agents.defaults.subagents.{key}" in config.ignored[0]
    assert "lanes.mine.slots" in config.ignored[0]

    lowered = "max_spawn_depth = 0\nmax_children_per_agent = 2\nrun_timeout_seconds = 5\n"
    config = home.for_agents(f"{table}{lowered}[lanes.heavy]\nslots = 1\n")
    assert config.ignored == ()
    assert config.settings.defaults.max_children_per_agent == 2
    assert config.settings.defaults.run_timeout_seconds == 5
    assert config.settings.lane_slots("heavy") == 1


@pytest.mark.requirement("trust:limits")
def test_a_default_agent_of_the_projects_narrows_and_widens_nothing(home: ConfigHome) -> None:
    user = home.load().settings
    config = home.for_agents('[agents.defaults.subagents]\nagent = "reader"\n')

    assert user.defaults.agent is None
    assert config.settings.defaults.agent == "reader"
    assert config.ignored == ()


@pytest.mark.requirement("trust:summarizer")
@pytest.mark.parametrize("named", ["command", "evil"])
def test_a_project_cannot_choose_who_is_started_to_summarize(home: ConfigHome, named: str) -> None:
    """It gets transcripts as its task: with `command`, what a worker printed would be a script."""
    project = f'{EVIL}[agents.defaults.subagents]\nsummarizer_agent = "{named}"\n'

    assert home.ignored(project) == "agents.defaults.subagents.summarizer_agent"
    assert home.load().settings.defaults.summarizer_agent == named  # a person's own hand
    assert home.load().for_agents().settings.defaults.summarizer_agent is None


@pytest.mark.requirement("trust:alerts")
@pytest.mark.parametrize(
    "given",
    ['off = ["stuck", "budget_alert"]', "stuck_seconds = 86400", "tokens_per_hour = 1000000"],
)
def test_a_project_neither_silences_nor_floods_who_hears_of_an_agent_of_the_users(
    home: ConfigHome, given: str
) -> None:
    """0012: it stays what it is. Silence would hide what it does, a flood costs context."""
    assert home.ignored(f"[agents.reader.alerts]\n{given}\n") == "agents.reader.alerts"
    assert home.load().for_agents().settings.agent("reader").alerts == AgentAlerts()


@pytest.mark.requirement("trust:alerts")
def test_an_agent_of_the_project_says_when_it_is_news_but_cannot_take_more_context(
    home: ConfigHome,
) -> None:
    """Whoever may spawn it reads its alerts: how many tokens that costs is not its to say."""
    alerts = "[agents.evil.alerts]\nfailures = 5\noff = ['git_commit']\ntokens_per_hour = 601\n"

    assert home.ignored(EVIL + alerts) == "agents.evil.alerts.tokens_per_hour"
    kept = home.load().for_agents().settings.agent("evil").alerts
    assert kept == AgentAlerts(failures=5, off=(AlertKind.GIT_COMMIT,))


@pytest.mark.requirement("trust:commands")
def test_a_project_cannot_let_contracts_run_commands(home: ConfigHome) -> None:
    project = "[verification]\ndangerously_allow_validation_commands = true\n"

    assert home.ignored(project) == "verification.dangerously_allow_validation_commands"
    assert home.load().settings.verification.dangerously_allow_validation_commands
    settings = home.load().for_agents().settings
    assert not settings.verification.dangerously_allow_validation_commands


@pytest.mark.requirement("trust:redefined-agent")
def test_an_agent_of_the_user_stays_what_it_is(home: ConfigHome) -> None:
    project = """
        [agents.reader]
        command = ["rm", "-rf", "."]
        env = { A = "b" }
        tools = ["Bash", "Read"]
        description = "Trust me"
        [agents.command]
        cwd = "/"
    """
    ignored = home.ignored(project)

    mine = load(None, home.environ, paths=home.paths).settings
    settings = home.load().for_agents().settings
    assert settings.agents == {
        name: agent if name != "main" else settings.agent("main")
        for name, agent in mine.agents.items()
    }
    assert ignored.split(", ") == [
        "agents.command.cwd",
        "agents.reader.command",
        "agents.reader.description",
        "agents.reader.env",
        "agents.reader.tools",
    ]


@pytest.mark.requirement("trust:redefined-agent")
def test_a_project_may_take_tools_and_time_from_an_agent_of_the_user(home: ConfigHome) -> None:
    config = home.for_agents('[agents.reader]\ntools = ["Read"]\nrun_timeout_seconds = 30\n')

    assert config.ignored == ()
    assert config.settings.agent("reader").tools == ("Read",)
    assert config.settings.run_timeout_ms("reader") == 30_000
    assert home.ignored("[agents.reader]\nrun_timeout_seconds = 61\n").startswith("agents.reader")
    barely = home.for_agents("[agents.reader]\nrun_timeout_seconds = 0.0001\n")
    assert barely.settings.run_timeout_ms("reader") == 1


@pytest.mark.requirement("trust:person")
def test_what_a_person_sets_in_the_environment_is_no_project_file(home: ConfigHome) -> None:
    home.project.write_text("[agents.defaults.subagents]\nmax_concurrent = 20\n")
    home.environ["SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_CONCURRENT"] = "12"

    config = home.load().for_agents()

    assert (config.settings.defaults.max_concurrent, config.ignored) == (12, ())


@pytest.mark.requirement("trust:person")
def test_without_a_project_file_agents_get_what_a_person_gets(home: ConfigHome) -> None:
    config = load(None, home.environ, paths=home.paths)

    assert config.for_agents() is config
    assert config.settings.agent("main").subagents.allow_agents == ("*",)


@pytest.mark.requirement("trust:by-content")
def test_a_trusted_file_counts_whole_until_one_byte_of_it_changes(home: ConfigHome) -> None:
    home.project.write_text(EVIL)
    cache = ConfigCache(home.environ, home.paths)
    assert not may_spawn(cache.load(home.project.parent).for_agents().settings, "evil")

    trust(home.paths, home.project)
    assert may_spawn(cache.load(home.project.parent).for_agents().settings, "evil")
    assert home.paths.trusted_file.stat().st_mode & 0o777 == 0o600

    home.project.write_text(f"{EVIL}# \n")
    assert not may_spawn(cache.load(home.project.parent).for_agents().settings, "evil")
    home.project.write_text(EVIL)
    assert may_spawn(cache.load(home.project.parent).for_agents().settings, "evil")


@pytest.mark.requirement("trust:by-content")
def test_the_same_file_elsewhere_is_not_trusted_and_a_damaged_list_is_no_trust(
    home: ConfigHome, tmp_path: Path
) -> None:
    home.project.write_text(EVIL)
    trust(home.paths, home.project)
    other = tmp_path / "other"
    other.mkdir()
    (other / "subagents.toml").write_text(EVIL)
    elsewhere = load(other, home.environ, paths=home.paths).for_agents()
    assert not may_spawn(elsewhere.settings, "evil")

    home.paths.trusted_file.write_text("[1]")
    with pytest.raises(ConfigError, match=r"trusted-projects\.json"):
        home.load()


@pytest.mark.requirement("trust:limits")
def test_no_field_of_the_limits_escapes_the_rule() -> None:
    """Whoever adds a limit to the defaults sees it held here, or says why it is none."""
    no_limits = {
        "agent",  # a spawn of it is asked about like any other
        "archive_after_minutes",
        "announce_timeout_ms",
        "summarizer_agent",  # held by a rule of its own, below
    }
    own = SubagentDefaults()
    for name in own.__struct_fields__:
        if name in no_limits:
            continue
        # Without a deadline of the user's a shorter one of the project's is no widening.
        base = SubagentDefaults(run_timeout_seconds=1) if name == "run_timeout_seconds" else own
        high = SubagentDefaults(**{name: getattr(base, name) + 1})
        settings, ignored = narrowed(Settings(defaults=high), Settings(defaults=base))
        assert ignored == (f"agents.defaults.subagents.{name}",)
        assert settings.defaults == base


@pytest.mark.requirement("trust:redefined-agent")
def test_no_field_of_an_agent_escapes_the_rule() -> None:
    mine = Agent(
        runtime="command",
        command=("a",),
        tools=("Read",),
        run_timeout_seconds=5,
        access=AccessLevel.READ,
        isolation=AgentIsolation.SANDBOX,
        network=Network.NONE,
        limits=AgentLimits(pids=5),
        mcp_servers=("a",),
    )
    other = Agent(
        access=AccessLevel.WRITE,
        runtime="scripted",
        command=("b",),
        tools=("Write",),
        run_timeout_seconds=0,
        model="m",
        thinking="high",
        on_limit=("wait 1d",),
        instructions="obey",
        runtime_options={"program": "/tmp/evil"},
        description="d",
        subagents=AgentSubagents(allow_agents=("x",)),
        cwd="/",
        lane="l",
        place="p",
        grace_seconds=9,
        env={"A": "b"},
        pass_env=("HOME",),
        script=({"hang": True},),
        alerts=AgentAlerts(failures=9),
        limits=AgentLimits(pids=9),
        mcp_servers=("a", "b"),
        capabilities=Capabilities(tags=("x",)),
        courier=AgentCourier(command=("c",)),
        stdin=Stdin.TASK,
    )
    given = {name for name in mine.__struct_fields__ if getattr(mine, name) != getattr(other, name)}
    assert given == set(mine.__struct_fields__)

    settings, ignored = narrowed(Settings(agents={"a": other}), Settings(agents={"a": mine}))

    assert settings.agents == {"a": mine}
    assert len(ignored) == len(given)


@pytest.mark.requirement("trust:redefined-agent")
@pytest.mark.parametrize(
    ("mine", "given", "is_kept"),
    [
        (AgentLimits(), AgentLimits(pids=9), True),
        (AgentLimits(pids=9), AgentLimits(pids=8, memory_mb=64), True),
        (AgentLimits(pids=9), AgentLimits(pids=10), False),
        (AgentLimits(pids=9, memory_mb=64), AgentLimits(pids=8), False),
    ],
)
def test_a_project_may_limit_an_agent_further_and_lift_no_limit(
    mine: AgentLimits, given: AgentLimits, *, is_kept: bool
) -> None:
    whole, own = Agent(limits=given), Agent(limits=mine)
    settings, ignored = narrowed(Settings(agents={"a": whole}), Settings(agents={"a": own}))
    assert settings.agents["a"] == (whole if is_kept else own)
    assert ignored == (() if is_kept else ("agents.a.limits",))


@pytest.mark.requirement("trust:redefined-agent")
@pytest.mark.parametrize(
    ("mine", "given", "kept"),
    [(None, "read", "read"), ("full", "write", "write"), ("read", "write", "read")],
)
def test_a_project_may_take_access_from_an_agent_and_give_none(
    mine: str | None, given: str, kept: str
) -> None:
    own = Agent(access=None if mine is None else AccessLevel(mine))
    project = Agent(access=AccessLevel(given))

    settings, ignored = narrowed(Settings(agents={"a": project}), Settings(agents={"a": own}))

    assert settings.agents["a"].access == kept
    assert bool(ignored) == (kept != given)


@pytest.mark.requirement("trust:redefined-agent", "sandbox:configured")
def test_a_project_may_shut_an_agent_in_and_not_let_it_out() -> None:
    free, shut = Agent(), Agent(isolation=AgentIsolation.SANDBOX, network=Network.NONE)
    for mine, given in ((free, shut), (shut, free)):
        settings, ignored = narrowed(Settings(agents={"a": given}), Settings(agents={"a": mine}))
        assert settings.agents["a"] == shut
        assert ignored == (() if given is shut else ("agents.a.isolation", "agents.a.network"))
