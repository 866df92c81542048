"""Where each value comes from, and what a wrong one is answered with."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.call_counts import calls_of
from tests.config.config_homes import LIMIT, LIMIT_VARIABLE, ConfigHome

from subagents.config import layers
from subagents.config.layers import LOOK_AGAIN_S, Config, ConfigCache, Leaf, load
from subagents.config.settings import Capabilities, CostTier
from subagents.errors import ConfigError

CACHED_CALLS_MAX = 16
"""However many variables there are; it may only become smaller."""


def leaf(config: Config, key: str) -> Leaf:
    return next(leaf for leaf in config.leaves() if leaf.key == key)


@pytest.mark.requirement("config:built-in")
def test_without_any_file_there_is_a_command_agent_and_a_caller_that_may_not_use_it(
    home: ConfigHome,
) -> None:
    settings = home.load().settings

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
def test_without_bash_the_command_agent_uses_sh(home: ConfigHome, tmp_path: Path) -> None:
    home.environ["PATH"] = str(tmp_path)

    assert home.load().settings.agent("command").command == ("sh", "-c", "{task}")


@pytest.mark.requirement("config:order")
@pytest.mark.requirement("config:origin")
def test_each_layer_overrides_the_one_before_and_is_named_as_the_origin(home: ConfigHome) -> None:
    def effective(config: Config) -> tuple[object, str]:
        return leaf(config, LIMIT).value, leaf(config, LIMIT).origin

    assert effective(home.load()) == (8, "default")
    home.user.write_text(f"{LIMIT} = 9")
    assert effective(home.load()) == (9, str(home.user))
    home.project.write_text(f"{LIMIT} = 10")
    assert effective(home.load()) == (10, str(home.project))
    home.environ[LIMIT_VARIABLE] = "11"
    assert effective(home.load()) == (11, LIMIT_VARIABLE)
    flagged = load(home.cwd, home.environ, paths=home.paths, overrides={LIMIT: 12})
    assert effective(flagged) == (12, f"flag {LIMIT}")


@pytest.mark.requirement("config:merge")
def test_tables_merge_key_by_key_and_lists_replace(home: ConfigHome) -> None:
    home.user.write_text(
        '[agents.build]\nruntime = "command"\ncommand = ["make"]\n'
        'subagents.allow_agents = ["a", "b"]\nenv = { A = "1", B = "2" }\n'
    )
    home.project.write_text(
        '[agents.build]\nmodel = "m"\nsubagents.allow_agents = ["c"]\nenv = { B = "3" }\n'
        "capabilities = {}\n"
    )

    config = home.load()
    build = config.settings.agent("build")

    assert (build.command, build.model) == (("make",), "m")
    assert build.subagents.allow_agents == ("c",)
    assert build.env == {"A": "1", "B": "3"}
    assert leaf(config, "agents.build.env.A").origin == str(home.user)
    assert leaf(config, "agents.build.env.B").origin == str(home.project)


@pytest.mark.requirement("config:merge")
def test_an_empty_table_in_a_later_layer_takes_nothing_away(home: ConfigHome) -> None:
    home.user.write_text('[agents.build]\nruntime = "command"\ncommand = ["make"]\n')
    home.project.write_text("[agents.build]\n")

    assert home.load().settings.agent("build").command == ("make",)


@pytest.mark.requirement("config:origin")
def test_environment_values_of_workers_are_marked_as_secret_in_the_listing(
    home: ConfigHome,
) -> None:
    home.user.write_text(
        '[agents.command]\nenv = { API_KEY = "k" }\nmodel = "m"\n'
        '[daemon]\nstore = "postgresql://me:password@db.example/subagents"\n'
    )
    config = home.load()

    assert leaf(config, "agents.command.env.API_KEY").is_secret
    assert leaf(config, "daemon.store").is_secret
    assert not leaf(config, "agents.command.model").is_secret


@pytest.mark.requirement("config:origin")
def test_a_token_in_an_agents_command_is_not_shown(home: ConfigHome) -> None:
    home.user.write_text(
        '[agents.command]\ncommand = ["x", "-H", "Authorization: Bearer a1b2c3d4e5f6", "{task}"]\n'
    )
    found = leaf(home.load(), "agents.command.command")
    assert found.shown == ["x", "-H", "Authorization: Bearer [redacted]", "{task}"]


@pytest.mark.requirement("config:warnings")
def test_an_allowed_agent_that_looks_like_a_typo_is_warned_about(home: ConfigHome) -> None:
    home.user.write_text('[agents.main]\nsubagents.allow_agents = ["comand", "claude", "*"]\n')

    assert home.load().warnings == (
        (
            f'{home.user}: agents.main.subagents.allow_agents names "comand", which is not '
            'configured; did you mean "command"?'
        ),
    )


@pytest.mark.requirement("config:cache")
def test_the_cache_answers_with_the_same_object_until_something_changes(home: ConfigHome) -> None:
    now_s = 0.0
    cache = ConfigCache(home.environ, home.paths, lambda: now_s)
    first = cache.load(home.cwd)

    assert cache.load(home.cwd) is first
    now_s += LOOK_AGAIN_S
    assert cache.load(home.cwd) is first

    home.project.write_text(f"{LIMIT} = 10")
    now_s += LOOK_AGAIN_S
    assert cache.load(home.cwd).settings.defaults.max_concurrent == 10
    home.user.write_text("agents.defaults.subagents.max_spawn_depth = 3")
    assert cache.load(home.cwd).settings.defaults.max_spawn_depth == 3
    home.project.unlink()
    assert cache.load(home.cwd).settings.defaults.max_concurrent == 8


@pytest.mark.requirement("config:cache")
def test_the_cache_notices_a_replaced_file_of_the_same_size_and_time(home: ConfigHome) -> None:
    cache = ConfigCache(home.environ, home.paths)
    home.project.write_text(f"{LIMIT} = 10")
    found = home.project.stat()
    assert cache.load(home.cwd).settings.defaults.max_concurrent == 10

    other = home.project.with_suffix(".new")
    other.write_text(f"{LIMIT} = 20")
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    other.replace(home.project)

    assert cache.load(home.cwd).settings.defaults.max_concurrent == 20


@pytest.mark.requirement("config:cache")
def test_a_new_file_is_seen_at_once_where_the_caller_is_and_above_within_a_second(
    home: ConfigHome,
) -> None:
    now_s, below = 0.0, home.cwd / "below"
    below.mkdir()
    cache = ConfigCache(home.environ, home.paths, lambda: now_s)
    assert cache.load(below).settings.defaults.max_concurrent == 8

    home.project.write_text(f"{LIMIT} = 10")
    now_s += LOOK_AGAIN_S
    assert cache.load(below).settings.defaults.max_concurrent == 10
    (below / home.project.name).write_text(f"{LIMIT} = 20")
    assert cache.load(below).settings.defaults.max_concurrent == 20
    home.project.write_text(f"{LIMIT} = 30")
    (below / home.project.name).unlink()
    assert cache.load(below).settings.defaults.max_concurrent == 30


@pytest.mark.requirement("config:cache")
def test_an_answer_from_memory_looks_at_the_files_it_was_read_from_and_at_no_directory(
    home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.project.write_text(f"{LIMIT} = 10")
    cache = ConfigCache(home.environ, home.paths, lambda: 0.0)
    first, looks, real = cache.load(home.cwd), [], os.stat

    def looked(path: str) -> os.stat_result:
        looks.append(path)
        return real(path)

    monkeypatch.setattr(os, "lstat", lambda path: pytest.fail(f"looked at {path}"))
    monkeypatch.setattr(os, "stat", looked)

    assert cache.load(home.cwd) is first
    assert len(looks) <= 4


@pytest.mark.requirement("config:cache")
def test_the_cache_answers_no_old_configuration_for_a_broken_file(home: ConfigHome) -> None:
    now_s = 0.0
    cache = ConfigCache(home.environ, home.paths, lambda: now_s)
    cache.load(home.cwd)
    home.project.write_text("zzz = 1")
    now_s += LOOK_AGAIN_S

    for _ in range(2):
        with pytest.raises(ConfigError, match="unknown key zzz"):
            cache.load(home.cwd)


@pytest.mark.requirement("config:cache")
def test_an_unchanged_configuration_is_read_once(home: ConfigHome) -> None:
    home.project.write_text(f"{LIMIT} = 10")
    cache = ConfigCache(home.environ, home.paths)

    assert cache.load(home.cwd) is cache.load(home.cwd)


@pytest.mark.requirement("speed:calls-per-configuration")
def test_a_configuration_that_is_remembered_costs_no_more_calls_than_it_did(
    home: ConfigHome,
) -> None:
    cache = ConfigCache({**home.environ, **{f"OTHER_{n}": "" for n in range(500)}}, home.paths)

    assert calls_of(lambda: cache.load(home.cwd)) <= CACHED_CALLS_MAX


@pytest.mark.requirement("config:capability-card")
def test_an_agent_may_carry_a_capability_card_and_works_as_before_without_one(
    home: ConfigHome,
) -> None:
    home.user.write_text(
        "[agents.athena]\ncapabilities = { tags = ['research', 'code-review'], "
        "cost_tier = 'medium', typical_latency = '90s', notes = 'No file writes.' }\n"
    )

    settings = home.load().settings

    card = settings.agent("athena").capabilities
    assert (card.tags, card.cost_tier) == (("research", "code-review"), CostTier.MEDIUM)
    assert (card.typical_latency, card.notes) == ("90s", "No file writes.")
    assert settings.agent("command").capabilities == Capabilities()


@pytest.mark.requirement("config:bounded-work")
def test_a_file_that_is_wrong_is_read_once_until_it_changes(
    home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.project.write_text("a = 1\nb = 2\n")
    cache, reads = ConfigCache(home.environ, home.paths), []

    def counted(*args: Any, **options: Any) -> Config:
        reads.append(args)
        return load(*args, **options)

    monkeypatch.setattr(layers, "load", counted)
    messages = set()
    for _ in range(3):
        with pytest.raises(ConfigError, match="unknown key a") as refused:
            cache.load(home.cwd)
        messages.add((refused.value.message, refused.value.hint))
    assert (len(reads), len(messages)) == (1, 1)

    home.project.write_text(f"{LIMIT} = 3\n")
    assert cache.load(home.cwd).settings.defaults.max_concurrent == 3
