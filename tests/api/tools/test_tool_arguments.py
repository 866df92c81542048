"""A tool's arguments as they are decoded: null is absent, and mistakes are named."""

import pytest
from tests.api.tools.tool_callers import CONFIG, ToolCaller

from subagents.api.tools.tool import Audience
from subagents.api.tools.tool_registry import TOOLS

REQUESTER = [name for name, tool in TOOLS.items() if tool.audience is Audience.REQUESTER]


@pytest.mark.requirement("tools:refuses-unknown")
@pytest.mark.parametrize("name", REQUESTER)
@pytest.mark.configured(CONFIG)
async def test_an_unknown_parameter_is_refused_with_the_nearest_known_one(
    desk: ToolCaller, name: str
) -> None:
    properties = TOOLS[name].schema["properties"]
    assert isinstance(properties, dict)
    known = list(properties)
    typo = f"{known[0][:-1]}_{known[0][-1]}"
    answer = await desk.refused(name, **{typo: "x"})
    nonsense = await desk.refused(name, zzzzqqqq="x")

    assert f'unknown parameter "{typo}": did you mean "{known[0]}"?' in answer.text
    assert answer.structured["code"] == "invalid"
    assert answer.structured["hint"] == answer.text.splitlines()[1].removeprefix("hint: ")
    assert 'unknown parameter "zzzzqqqq"' in nonsense.text
    for parameter in known:
        assert parameter in str(nonsense.structured["hint"])


@pytest.mark.requirement("tools:null-is-absent")
async def test_parameters_that_are_null_count_as_absent_at_any_depth(desk: ToolCaller) -> None:
    schema = {"const": None}
    artifact = {"path": "a.json", "json": True, "minItems": None, "schema": schema}
    found = await desk.ok(
        "sessions_spawn",
        task="work",
        agentId="hang",
        model=None,
        batch=None,
        bogus=None,
        dependsOn=None,
        verification={"artifacts": [artifact], "commands": None},
    )
    run = await desk.home.services.engine.queries.run(found["runId"])

    assert run.spec.verification is not None
    # What stands in a JSON Schema is the caller's: there null means something.
    assert run.spec.verification.artifacts[0].schema == schema
    assert run.spec.verification.artifacts[0].min_items is None
