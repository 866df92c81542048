"""What may stand in a configuration, and how a mistake is named."""

import pytest
from tests.config.config_homes import ConfigHome

NOT_ADDED = ", which no extension adds that is installed and works"


@pytest.mark.requirement("config:errors")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "agents.main.modle = 'x'",
            "unknown key agents.main.modle; did you mean agents.main.model?",
        ),
        (
            "agents.defaults.subagents.maxSpawnDepth = 2",
            (
                "unknown key agents.defaults.subagents.maxSpawnDepth; "
                "did you mean agents.defaults.subagents.max_spawn_depth?"
            ),
        ),
        (
            "max_concurrent = 3",
            "unknown key max_concurrent; did you mean agents.defaults.subagents.max_concurrent?",
        ),
        (
            "agents.build.cost_tier = 'free'",
            "unknown key agents.build.cost_tier; did you mean agents.build.capabilities.cost_tier?",
        ),
        ("zzz = 1", f"unknown key zzz{NOT_ADDED}"),
        (
            "agents.defaults.subagents.max_concurrent = -1",
            "agents.defaults.subagents.max_concurrent must be an integer from 1 to 10000, not -1",
        ),
        (
            "agents.defaults.subagents.max_concurrent = true",
            "agents.defaults.subagents.max_concurrent must be an integer from 1 to 10000, not true",
        ),
        (
            "agents.defaults.subagents.max_concurrent = 2.5",
            "agents.defaults.subagents.max_concurrent must be an integer from 1 to 10000, not 2.5",
        ),
        (
            "agents.defaults.subagents.run_timeout_seconds = -0.5",
            (
                "agents.defaults.subagents.run_timeout_seconds must be "
                "a number from 0 to 31536000, not -0.5"
            ),
        ),
        (
            "daemon.sweep_seconds = nan",
            "daemon.sweep_seconds must be a number from 0.1 to 3600, not nan",
        ),
        (
            "retention.result_retention_days = 6",
            "retention.result_retention_days must be an integer from 7 to 3650, not 6",
        ),
        (
            "agents.build.capabilities.cost_tier = 'chaep'",
            (
                'agents.build.capabilities.cost_tier must be one of "free", "cheap", "medium", '
                '"expensive", not "chaep"; did you mean "cheap"?'
            ),
        ),
        (
            "agents.build.runtime = 'comand'",
            (
                'agents.build.runtime must be one of "command", "scripted", "claude-code", '
                '"codex", "acp", "llm", not "comand"; did you mean "command"?'
            ),
        ),
        (
            "agents.build.runtime = 'calculator'",
            (
                'agents.build.runtime must be one of "command", "scripted", "claude-code", '
                '"codex", "acp", "llm", not "calculator"; is the package that adds it installed?'
            ),
        ),
        (
            "agents.build.command = 'make'",
            "agents.build.command must be a list of text with at least 1 item, not this text",
        ),
        (
            "agents.build.command = []",
            "agents.build.command must be a list of text with at least 1 item, not 0 items",
        ),
        ("agents.build.command = ['a', 2]", "agents.build.command[1] must be text, not 2"),
        ("agents.build.model = ''", 'agents.build.model must be non-empty text, not ""'),
        (
            "agents.build.model = 2025-01-01",
            "agents.build.model must be non-empty text, not 2025-01-01",
        ),
        ('agents.build.model = "a\\u0000b"', "agents.build.model must not contain NUL characters"),
        pytest.param(
            f"daemon.lease_seconds = 0x{'f' * 9000}",
            "daemon.lease_seconds is a number of over a thousand digits",
            id="huge integer",
        ),
        (
            "agents.defaults.env = { A = 1 }",
            "unknown key agents.defaults.env; did you mean agents.<id>.pass_env?",
        ),
        (
            "agents.build.script = [{ x = inf }]",
            (
                "agents.build.script[0] must be a table of text, numbers, true or false, lists "
                "and tables, not a table that holds something else"
            ),
        ),
        ("agents.build = 3", "agents.build must be a table, not 3"),
        (
            "agents.Build.model = 'x'",
            (
                "agents.Build: the <id> must be a name of at most 64 lower-case letters, digits, _ "
                "and -, starting with a letter or digit"
            ),
        ),
        ('"a\\u001b[31m" = 1', f'unknown key "a\\u001b[31m"{NOT_ADDED}'),
        (
            "lanes.default.slots = 3",
            (
                "lanes.default cannot be set: the slots of the default lane are "
                "agents.defaults.subagents.max_concurrent"
            ),
        ),
        (
            "agents.build.pass_env = ['A B']",
            (
                "agents.build.pass_env[0] must be the name of an environment variable "
                '(letters, digits and _), not "A B"'
            ),
        ),
        ("agents.build.env.KEY = 12345", "agents.build.env.KEY must be text, not a number"),
        (
            "agents.build.script = [{ at = 2025-01-01 }]",
            (
                "agents.build.script[0] must be a table of text, numbers, true or false, lists and "
                "tables, not a table that holds something else"
            ),
        ),
        (
            "agents.defaults.subagents.agent = 'comand'",
            (
                'agents.defaults.subagents.agent names "comand", which is not configured; '
                'did you mean "command"?'
            ),
        ),
        (
            "agents.build.lane = 'heavi'\nlanes.heavy.slots = 1",
            'agents.build.lane names "heavi", which is not configured; did you mean "heavy"?',
        ),
        (
            "agents.build.runtime = 'command'",
            'agents.build.command is missing; runtime "command" needs the program to run',
        ),
        (
            "agents.build.command = ['make']",
            "agents.build.runtime is missing; command has no effect without one",
        ),
    ],
)
def test_a_wrong_key_or_value_is_refused_with_the_file_the_key_and_what_is_allowed(
    home: ConfigHome, text: str, message: str
) -> None:
    home.project.write_text(text)

    where, _, said = home.refusal().message.partition(": ")
    assert said == message
    assert where.removesuffix(":1") == str(home.project)


@pytest.mark.requirement("config:errors")
def test_all_problems_of_a_file_are_told_at_once(home: ConfigHome) -> None:
    home.user.write_text("zzz = 1\n[daemon]\nlease_seconds = 0\n")

    refusal = home.refusal()

    assert refusal.message.splitlines() == [
        f"{home.user}:1: unknown key zzz{NOT_ADDED}",
        f"{home.user}:3: daemon.lease_seconds must be a number from 0.1 to 3600, not 0",
    ]
    assert refusal.details["keys"] == ["zzz", "daemon.lease_seconds"]
    known = "agents, lanes, verification, retention, daemon, budgets, secrets"
    assert refusal.hint is not None
    assert refusal.hint.startswith(f"known here: {known}")
    assert refusal.exit_code == 2


@pytest.mark.requirement("config:errors")
def test_an_unknown_variable_is_refused_with_the_nearest_key(home: ConfigHome) -> None:
    home.environ["SUBAGENTS_LANES__HEAVY__SLOT"] = "3"

    assert home.refusal().message == (
        "SUBAGENTS_LANES__HEAVY__SLOT: unknown key lanes.heavy.slot; "
        "did you mean lanes.heavy.slots?"
    )


@pytest.mark.requirement("config:capability-card")
def test_a_wrong_capability_card_is_refused(home: ConfigHome) -> None:
    home.user.write_text("[agents.athena.capabilities]\ntags = 'research'\ncostTier = 'free'\n")

    assert home.refusal().message.splitlines() == [
        (
            f"{home.user}:2: agents.athena.capabilities.tags must be a list of text of at most "
            "100 items, not this text"
        ),
        (
            f"{home.user}:3: unknown key agents.athena.capabilities.costTier; "
            "did you mean agents.athena.capabilities.cost_tier?"
        ),
    ]
