"""Looking things up in the settings."""

import pytest

from subagents.config.settings import (
    Agent,
    AgentAlerts,
    LaneSettings,
    Settings,
    SubagentDefaults,
    nearest,
)
from subagents.errors import ConfigError, NotFound


@pytest.mark.requirement("config:agent-lookup")
def test_an_unknown_agent_is_answered_with_the_nearest_and_all_configured_ones() -> None:
    settings = Settings(agents={"researcher": Agent(), "build": Agent()})

    with pytest.raises(NotFound) as caught:
        settings.agent("reseacher")

    assert caught.value.message == (
        "no agent 'reseacher' is configured; did you mean 'researcher'? "
        "(configured: build, researcher)"
    )
    assert caught.value.exit_code == 3


@pytest.mark.requirement("config:agent-lookup")
def test_without_any_agent_the_answer_says_none() -> None:
    with pytest.raises(NotFound, match=r"no agent 'x' is configured \(configured: none\)"):
        Settings().agent("x")


@pytest.mark.requirement("config:agent-lookup")
def test_agent_ids_are_looked_up_trimmed_and_in_lower_case() -> None:
    agent = Agent(model="m")

    assert Settings(agents={"build": agent}).agent(" Build ") is agent


@pytest.mark.requirement("config:limits")
def test_an_agents_own_timeout_wins_also_when_it_is_none_at_all() -> None:
    settings = Settings(
        defaults=SubagentDefaults(run_timeout_seconds=1.5),
        agents={"own": Agent(run_timeout_seconds=0), "plain": Agent()},
    )

    assert settings.run_timeout_ms("own") == 0
    assert settings.run_timeout_ms("plain") == 1500


@pytest.mark.requirement("config:limits")
@pytest.mark.parametrize("seconds", [0.0001, 0.0004, 1e-9, 0.0005, 0.001])
def test_a_time_that_is_too_short_to_measure_is_not_taken_for_none(seconds: float) -> None:
    alerts = AgentAlerts(
        stuck_seconds=seconds, stuck_tool_seconds=seconds, commit_batch_seconds=seconds
    )

    assert Settings(agents={"a": Agent(run_timeout_seconds=seconds)}).run_timeout_ms("a") == 1
    assert (alerts.rules.stuck_ms, alerts.rules.stuck_tool_ms) == (1, 1)
    assert alerts.rules.commit_batch_ms == 1


@pytest.mark.requirement("config:limits")
def test_the_default_lane_has_the_slots_of_max_concurrent() -> None:
    settings = Settings(
        defaults=SubagentDefaults(max_concurrent=3), lanes={"heavy": LaneSettings(slots=2)}
    )

    assert settings.lane_slots("default") == 3
    assert settings.lane_slots("heavy") == 2
    with pytest.raises(ConfigError) as caught:
        settings.lane_slots("light")
    assert caught.value.message == ("no lane 'light' is configured (configured: default, heavy)")


@pytest.mark.requirement("config:agent-lookup")
@pytest.mark.parametrize(
    ("word", "expected"), [("maxSpawnDepth", "max_spawn_depth"), ("LANE", "lane"), ("zzz", None)]
)
def test_the_nearest_name_is_found_whatever_the_spelling_of_words(
    word: str, expected: str | None
) -> None:
    assert nearest(word, ("max_spawn_depth", "lane", "model")) == expected


@pytest.mark.requirement("config:agent-lookup")
def test_the_runtime_options_of_an_agent_are_json_values_of_what_is_configured() -> None:
    scripted = Agent(runtime="scripted", script=({"say": "hi"},), env={"A": "1"})

    assert scripted.options == {"env": {"A": "1"}, "script": [{"say": "hi"}]}
    assert Agent(runtime="claude-code").options == {"env": {}, "pass_env": []}


@pytest.mark.requirement("config:runtime-options")
def test_a_runtime_gets_its_own_options_whole_beside_the_environment() -> None:
    agent = Agent(
        runtime="acp",
        runtime_options={"agent": "gemini", "mode": {"name": "yolo"}},
        pass_env=("GEMINI_API_KEY",),
    )

    assert agent.options == {
        "agent": "gemini",
        "mode": {"name": "yolo"},
        "env": {},
        "pass_env": ["GEMINI_API_KEY"],
    }
