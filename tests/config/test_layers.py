"""Where each value comes from, and what a wrong one is answered with."""

import os
from pathlib import Path

import pytest

from subagents.config import (
    Config,
    ConfigCache,
    Leaf,
    Paths,
    load,
)
from subagents.config.settings import Capabilities, CostTier
from subagents.errors import ConfigError

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/home/somebody"}


class Place:
    """A home with its user file, and a project directory with its own."""

    def __init__(self, root: Path) -> None:
        self.environ = {**ENVIRON, "SUBAGENTS_HOME": str(root / "home")}
        self.paths = Paths.resolve(self.environ)
        self.user = self.paths.config_file
        self.user.parent.mkdir(parents=True)
        self.cwd = root / "project" / "deep" / "down"
        self.cwd.mkdir(parents=True)
        self.project = root / "project" / "subagents.toml"

    def load(self, **overrides: object) -> Config:
        dotted = {key.replace("__", "."): value for key, value in overrides.items()}
        return load(self.cwd, self.environ, paths=self.paths, overrides=dotted)

    def refusal(self, **overrides: object) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.load(**overrides)
        return caught.value


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def leaf(config: Config, key: str) -> Leaf:
    return next(leaf for leaf in config.leaves() if leaf.key == key)


LIMIT = "agents.defaults.subagents.max_concurrent"
LIMIT_VARIABLE = "SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_CONCURRENT"


@pytest.mark.requirement("config:built-in")
def test_without_any_file_there_is_a_command_agent_and_a_caller_that_may_not_use_it(
    place: Place,
) -> None:
    settings = place.load().settings

    assert settings.agent("command").runtime == "command"
    assert settings.agent("command").options == {
        "command": ["bash", "-c", "{task}"],
        "stdin": "none",
        "env": {},
        "pass_env": [],
    }
    assert settings.agent("main").runtime is None
    assert settings.agent("main").subagents.allow_agents == ()
    assert settings.defaults.max_spawn_depth == 1
    assert settings.defaults.max_children_per_agent == 5
    assert settings.lane_slots("default") == 8
    assert settings.retention.result_retention_days == 7


@pytest.mark.requirement("config:built-in")
def test_without_bash_the_command_agent_uses_sh(place: Place, tmp_path: Path) -> None:
    place.environ["PATH"] = str(tmp_path)

    assert place.load().settings.agent("command").command == ("sh", "-c", "{task}")


@pytest.mark.requirement("config:order")
@pytest.mark.requirement("config:origin")
def test_each_layer_overrides_the_one_before_and_is_named_as_the_origin(place: Place) -> None:
    def effective(config: Config) -> tuple[object, str]:
        return leaf(config, LIMIT).value, leaf(config, LIMIT).origin

    assert effective(place.load()) == (8, "default")
    place.user.write_text(f"{LIMIT} = 9")
    assert effective(place.load()) == (9, str(place.user))
    place.project.write_text(f"{LIMIT} = 10")
    assert effective(place.load()) == (10, str(place.project))
    place.environ[LIMIT_VARIABLE] = "11"
    assert effective(place.load()) == (11, LIMIT_VARIABLE)
    flagged = load(place.cwd, place.environ, paths=place.paths, overrides={LIMIT: 12})
    assert effective(flagged) == (12, f"flag {LIMIT}")


@pytest.mark.requirement("config:merge")
def test_tables_merge_key_by_key_and_lists_replace(place: Place) -> None:
    place.user.write_text(
        '[agents.build]\nruntime = "command"\ncommand = ["make"]\n'
        'subagents.allow_agents = ["a", "b"]\nenv = { A = "1", B = "2" }\n'
    )
    place.project.write_text(
        '[agents.build]\nmodel = "m"\nsubagents.allow_agents = ["c"]\nenv = { B = "3" }\n'
        "capabilities = {}\n"
    )

    config = place.load()
    build = config.settings.agent("build")

    assert (build.command, build.model) == (("make",), "m")
    assert build.subagents.allow_agents == ("c",)
    assert build.env == {"A": "1", "B": "3"}
    assert leaf(config, "agents.build.env.A").origin == str(place.user)
    assert leaf(config, "agents.build.env.B").origin == str(place.project)


@pytest.mark.requirement("config:merge")
def test_an_empty_table_in_a_later_layer_takes_nothing_away(place: Place) -> None:
    place.user.write_text('[agents.build]\nruntime = "command"\ncommand = ["make"]\n')
    place.project.write_text("[agents.build]\n")

    assert place.load().settings.agent("build").command == ("make",)


@pytest.mark.requirement("config:origin")
def test_environment_values_of_workers_are_marked_as_secret_in_the_listing(place: Place) -> None:
    place.user.write_text('[agents.command]\nenv = { API_KEY = "k" }\nmodel = "m"\n')
    config = place.load()

    assert leaf(config, "agents.command.env.API_KEY").is_secret
    assert not leaf(config, "agents.command.model").is_secret


@pytest.mark.requirement("config:project-file")
def test_the_nearest_project_file_above_the_working_directory_is_the_one_read(
    place: Place,
) -> None:
    nearest = place.cwd.parent / "subagents.toml"
    place.project.write_text(f"{LIMIT} = 10")
    nearest.write_text(f"{LIMIT} = 20")

    config = place.load()

    assert config.settings.defaults.max_concurrent == 20
    assert config.files == (nearest,)


@pytest.mark.requirement("config:project-file")
def test_without_a_working_directory_no_project_file_is_read(place: Place) -> None:
    place.project.write_text(f"{LIMIT} = 10")

    config = load(None, place.environ, paths=place.paths)

    assert config.settings.defaults.max_concurrent == 8
    assert config.files == ()


@pytest.mark.requirement("config:project-file")
def test_a_user_file_that_is_also_the_nearest_project_file_is_read_once(place: Place) -> None:
    place.user.write_text(f"{LIMIT} = 9")

    config = load(place.user.parent, place.environ, paths=place.paths)

    assert config.files == (place.user,)


@pytest.mark.requirement("config:project-file")
def test_an_agents_working_directory_starts_at_the_file_that_names_it(place: Place) -> None:
    place.user.write_text('[agents.here]\ncwd = "sub/.."\n[agents.home]\ncwd = "~/there"\n')
    place.project.write_text('[agents.there]\ncwd = "src"\n[agents.fixed]\ncwd = "/srv"\n')

    agents = place.load().settings.agents

    assert agents["here"].cwd == str(place.user.parent)
    assert agents["home"].cwd == "/home/somebody/there"
    assert agents["there"].cwd == str(place.project.parent / "src")
    assert agents["fixed"].cwd == "/srv"


@pytest.mark.requirement("config:project-file")
def test_a_relative_working_directory_without_a_project_is_refused(place: Place) -> None:
    place.environ["SUBAGENTS_AGENTS__COMMAND__CWD"] = "src"

    with pytest.raises(ConfigError) as caught:
        load(None, place.environ, paths=place.paths)

    assert caught.value.message == (
        'SUBAGENTS_AGENTS__COMMAND__CWD: agents.command.cwd must be an absolute path, not "src"'
    )


@pytest.mark.requirement("config:environment")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("claude-sonnet-5", "claude-sonnet-5"),
        ('"quoted"', "quoted"),
        ("5", "5"),
        ("true", "true"),
        ("a\nb = 2", "a\nb = 2"),
        ("1\nother = 2", "1\nother = 2"),
        pytest.param("[" * 5000, "[" * 5000, id="nested too deeply"),
    ],
)
def test_a_variable_that_is_no_fitting_toml_value_is_taken_as_text(
    place: Place, value: str, expected: str
) -> None:
    place.environ["SUBAGENTS_AGENTS__COMMAND__MODEL"] = value

    assert place.load().settings.agent("command").model == expected


@pytest.mark.requirement("config:environment")
def test_variables_set_lists_tables_and_keys_of_tables(place: Place) -> None:
    place.environ |= {
        "SUBAGENTS_AGENTS__MAIN__SUBAGENTS__ALLOW_AGENTS": '[" Command ", "*"]',
        "SUBAGENTS_LANES__HEAVY": "{ slots = 2 }",
        "SUBAGENTS_LANES__HEAVY__SLOTS": "3",
        "SUBAGENTS_AGENTS__COMMAND__ENV__Path__Like": "x",
    }

    settings = place.load().settings

    assert settings.agent("main").subagents.allow_agents == ("command", "*")
    assert settings.lane_slots("heavy") == 3
    assert settings.agent("command").env == {"Path__Like": "x"}


@pytest.mark.requirement("config:environment")
def test_a_variable_reaches_an_agent_whose_id_has_a_dash(place: Place) -> None:
    place.user.write_text('[agents.code-review]\nmodel = "a"\n')
    place.environ["SUBAGENTS_AGENTS__CODE_REVIEW__MODEL"] = "b"

    settings = place.load().settings

    assert settings.agent("code-review").model == "b"
    assert "code_review" not in settings.agents


@pytest.mark.requirement("config:environment")
def test_names_of_one_segment_and_of_other_programs_are_no_configuration(place: Place) -> None:
    expected = place.load().settings
    place.environ |= {"SUBAGENTS_TOKEN": "x", "SUBAGENTS_RUN_ID": "r", "OTHER__KEY": "1"}

    assert place.load().settings == expected


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
        ("zzz = 1", "unknown key zzz"),
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
            "agents.build.command = 'make'",
            'agents.build.command must be a list of text with at least 1 item, not "make"',
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
            "daemon.lease_seconds must be a number from 0.1 to 3600, not a number that large",
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
        ('"a\\u001b[31m" = 1', 'unknown key "a\\u001b[31m"'),
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
    place: Place, text: str, message: str
) -> None:
    place.project.write_text(text)

    assert place.refusal().message == f"{place.project}: {message}"


@pytest.mark.requirement("config:errors")
def test_all_problems_of_a_file_are_told_at_once(place: Place) -> None:
    place.user.write_text("zzz = 1\n[daemon]\nlease_seconds = 0\n")

    refusal = place.refusal()

    assert refusal.message.splitlines() == [
        f"{place.user}: unknown key zzz",
        f"{place.user}: daemon.lease_seconds must be a number from 0.1 to 3600, not 0",
    ]
    assert refusal.details["keys"] == ["zzz", "daemon.lease_seconds"]
    assert refusal.hint == "known here: agents, lanes, verification, retention, daemon, telemetry"
    assert refusal.exit_code == 2


@pytest.mark.requirement("config:errors")
def test_a_wrong_variable_is_named_in_the_refusal(place: Place) -> None:
    place.environ[LIMIT_VARIABLE] = "many"

    assert place.refusal().message == (
        f'{LIMIT_VARIABLE}: {LIMIT} must be an integer from 1 to 10000, not "many"'
    )


@pytest.mark.requirement("config:errors")
def test_an_unknown_variable_is_refused_with_the_nearest_key(place: Place) -> None:
    place.environ["SUBAGENTS_LANES__HEAVY__SLOT"] = "3"

    assert place.refusal().message == (
        "SUBAGENTS_LANES__HEAVY__SLOT: unknown key lanes.heavy.slot; "
        "did you mean lanes.heavy.slots?"
    )


@pytest.mark.requirement("config:errors")
def test_a_variable_with_undecodable_bytes_is_refused(place: Place) -> None:
    place.environ["SUBAGENTS_AGENTS__MAIN__MODEL"] = os.fsdecode(b"\xff")

    assert place.refusal().message == (
        "SUBAGENTS_AGENTS__MAIN__MODEL: agents.main.model is not valid UTF-8"
    )


@pytest.mark.requirement("config:errors")
def test_a_wrong_flag_is_named_in_the_refusal(place: Place) -> None:
    assert place.refusal(lanes__heavy__slots=0).message == (
        "flag lanes.heavy.slots: lanes.heavy.slots must be an integer from 1 to 10000, not 0"
    )


@pytest.mark.requirement("config:syntax")
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[agents\n", ":1:8: "),
        ("a = 1\nb = = 2\n", ":2:5: "),
        ("a = ", ":1: "),
        ("a = 1\nx", ":2: "),
    ],
)
def test_a_syntax_error_is_told_with_file_line_and_column(
    place: Place, text: str, where: str
) -> None:
    place.project.write_text(text)

    assert place.refusal().message.startswith(f"{place.project}{where}")


@pytest.mark.requirement("config:syntax")
def test_an_integer_of_thousands_of_digits_is_refused(place: Place) -> None:
    place.project.write_text("a = " + "9" * 5000)

    assert place.refusal().message.startswith(f"{place.project}:1: Exceeds the limit")


@pytest.mark.requirement("config:syntax")
def test_a_file_nested_beyond_reason_is_refused(place: Place) -> None:
    place.project.write_text("a = " + "[" * 20_000)

    assert place.refusal().message == f"{place.project}: nested too deeply"


@pytest.mark.requirement("config:unreadable")
def test_a_file_that_is_not_utf8_is_refused_with_line_and_byte(place: Place) -> None:
    place.user.write_bytes(b"# fine\n# caf\xe9\n")

    assert place.refusal().message == f"{place.user}:2: not valid UTF-8 (byte 0xe9)"


@pytest.mark.requirement("config:unreadable")
def test_a_byte_order_mark_is_accepted(place: Place) -> None:
    place.user.write_bytes(b"\xef\xbb\xbf" + f"{LIMIT} = 3".encode())

    assert place.load().settings.defaults.max_concurrent == 3


@pytest.mark.requirement("config:unreadable")
def test_a_directory_in_place_of_the_file_is_refused(place: Place) -> None:
    place.project.mkdir()

    assert place.refusal().message == f"{place.project} is a directory"


@pytest.mark.requirement("config:unreadable")
def test_a_fifo_in_place_of_the_file_is_refused_without_waiting_for_a_writer(
    place: Place,
) -> None:
    os.mkfifo(place.project)

    assert place.refusal().message == f"{place.project} is not a regular file"


@pytest.mark.requirement("config:unreadable")
def test_a_link_to_a_missing_file_is_refused(place: Place) -> None:
    place.user.symlink_to(place.user.parent / "gone")

    assert place.refusal().message == f"cannot read {place.user}: No such file or directory"


@pytest.mark.requirement("config:unreadable")
@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(place: Place) -> None:
    place.user.write_text("")
    place.user.chmod(0)

    assert place.refusal().message == f"cannot read {place.user}: Permission denied"


@pytest.mark.requirement("config:unreadable")
def test_an_absurdly_large_file_is_refused(place: Place) -> None:
    place.user.write_text("#" * (1024 * 1024 + 1))

    assert place.refusal().message == (f"{place.user} is larger than 1048576 bytes (1048577)")


@pytest.mark.requirement("config:warnings")
def test_an_allowed_agent_that_looks_like_a_typo_is_warned_about(place: Place) -> None:
    place.user.write_text('[agents.main]\nsubagents.allow_agents = ["comand", "claude", "*"]\n')

    assert place.load().warnings == (
        (
            f'{place.user}: agents.main.subagents.allow_agents names "comand", which is not '
            'configured; did you mean "command"?'
        ),
    )


@pytest.mark.requirement("config:cache")
def test_the_cache_answers_with_the_same_object_until_something_changes(place: Place) -> None:
    cache = ConfigCache(place.environ, place.paths)
    first = cache.load(place.cwd)

    assert cache.load(place.cwd) is first

    place.project.write_text(f"{LIMIT} = 10")
    assert cache.load(place.cwd).settings.defaults.max_concurrent == 10
    place.user.write_text("agents.defaults.subagents.max_spawn_depth = 3")
    assert cache.load(place.cwd).settings.defaults.max_spawn_depth == 3
    place.environ[LIMIT_VARIABLE] = "11"
    assert cache.load(place.cwd).settings.defaults.max_concurrent == 11
    del place.environ[LIMIT_VARIABLE]
    place.project.unlink()
    assert cache.load(place.cwd).settings.defaults.max_concurrent == 8


@pytest.mark.requirement("config:cache")
def test_the_cache_notices_a_replaced_file_of_the_same_size_and_time(place: Place) -> None:
    cache = ConfigCache(place.environ, place.paths)
    place.project.write_text(f"{LIMIT} = 10")
    found = place.project.stat()
    assert cache.load(place.cwd).settings.defaults.max_concurrent == 10

    other = place.project.with_suffix(".new")
    other.write_text(f"{LIMIT} = 20")
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    other.replace(place.project)

    assert cache.load(place.cwd).settings.defaults.max_concurrent == 20


@pytest.mark.requirement("config:cache")
def test_the_cache_answers_no_old_configuration_for_a_broken_file(place: Place) -> None:
    cache = ConfigCache(place.environ, place.paths)
    cache.load(place.cwd)
    place.project.write_text("zzz = 1")

    for _ in range(2):
        with pytest.raises(ConfigError, match="unknown key zzz"):
            cache.load(place.cwd)


@pytest.mark.requirement("config:cache")
def test_an_unchanged_configuration_is_read_once(place: Place) -> None:
    place.project.write_text(f"{LIMIT} = 10")
    cache = ConfigCache(place.environ, place.paths)

    assert cache.load(place.cwd) is cache.load(place.cwd)


@pytest.mark.requirement("config:capability-card")
def test_an_agent_may_carry_a_capability_card_and_works_as_before_without_one(
    place: Place,
) -> None:
    place.user.write_text(
        "[agents.athena]\ncapabilities = { tags = ['research', 'code-review'], "
        "cost_tier = 'medium', typical_latency = '90s', notes = 'No file writes.' }\n"
    )

    settings = place.load().settings

    card = settings.agent("athena").capabilities
    assert (card.tags, card.cost_tier) == (("research", "code-review"), CostTier.MEDIUM)
    assert (card.typical_latency, card.notes) == ("90s", "No file writes.")
    assert settings.agent("command").capabilities == Capabilities()


@pytest.mark.requirement("config:capability-card")
def test_a_wrong_capability_card_is_refused(place: Place) -> None:
    place.user.write_text("[agents.athena.capabilities]\ntags = 'research'\ncostTier = 'free'\n")

    assert place.refusal().message.splitlines() == [
        (
            f"{place.user}: agents.athena.capabilities.tags must be a list of text of at most 100 "
            'items, not "research"'
        ),
        (
            f"{place.user}: unknown key agents.athena.capabilities.costTier; "
            "did you mean agents.athena.capabilities.cost_tier?"
        ),
    ]
