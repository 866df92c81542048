"""Claude Code at work for longer: until a suite is green, below a cap, with much from the cache."""

from collections.abc import Iterator
from typing import Final

import pytest
from tests.e2e import runtime_cells as cells
from tests.e2e.claude_place import program
from tests.e2e.program_setups import CLAUDE
from tests.e2e.scripted_model import Say, Script, Tokens

pytestmark = [
    pytest.mark.skipif(program() is None, reason="claude-agent-sdk is not installed"),
    pytest.mark.timeout(300),
]
SUITE: Final = {"commands": ["python3 -B -m unittest -q"], "verificationTimeoutMs": 200_000}
TURNS: Final = 12


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cells.Place]:
    with cells.place_of(CLAUDE, tmp_path_factory.mktemp("claude")) as found:
        tests = "".join(
            f"    def test_{name}(self): self.assertEqual(shop.{name}, 1)\n" for name in "abc"
        )
        head = "import unittest, shop\n\nclass Shop(unittest.TestCase):\n"
        found.path("test_shop.py").write_text(head + tests)
        yield found


def fixes(place: cells.Place, count: int) -> Script:
    values = "; ".join(f"{name} = {int(at < count)}" for at, name in enumerate("abc"))
    return [place.setup.shell(f"echo '{values}' > shop.py"), Say(f"{count} fixed")]


@pytest.mark.requirement("retry:until-verified")
def test_a_failing_suite_is_green_at_the_fourth_attempt_in_one_conversation(
    place: cells.Place,
) -> None:
    place.model.scripts["fix"] = [turn for count in range(4) for turn in fixes(place, count)]
    done = place.finished("fix", verification=SUITE, retryUntilVerified=3)
    assert (done["outcome"]["status"], done["result"]) == ("ok", "3 fixed"), done
    assert len(place.home.show(done["runId"])["attempts"]) == 4
    seen = place.model.conversations[-1].seen
    assert [f"failures={left}" in seen for left in (3, 2, 1)] == [True] * 3, seen[-3000:]


@pytest.mark.requirement("retry:until-verified-sameness")
def test_a_hopeless_one_is_stopped_by_sameness(place: cells.Place) -> None:
    place.path("shop.py").write_text("a = b = c = 0\n")
    place.model.scripts["stuck"] = [Say("I see no fault"), Say("really")]
    done = place.finished("stuck", verification=SUITE, retryUntilVerified=9)
    assert done["outcome"]["reason"] == "verification_failed"
    assert done["outcome"]["error"].startswith("stopped after attempt 2: "), done


@pytest.mark.requirement("budget:uncached-tokens")
@pytest.mark.parametrize(
    ("budget", "status"),
    [({"maxTokens": 500_000}, "ok"), ({"maxTotalTokens": 500_000}, "partial")],
    ids=["fresh", "all"],
)
def test_fifty_thousand_cached_tokens_a_turn_count_only_against_a_cap_on_all(
    place: cells.Place, budget: dict[str, int], status: str
) -> None:
    turn = Tokens(100, 20, cached=50_000)
    shell = place.setup.shell("true")
    place.model.scripts["cached"] = [
        *[type(shell)(shell.tool, shell.arguments, tokens=turn)] * TURNS,
        Say("all of it", tokens=turn),
    ]
    done = place.finished("cached", budget=budget)
    assert done["outcome"]["status"] == status, done
    usage = place.home.row(done["runId"])["usage"]
    assert usage["tokensCacheRead"] >= 500_000
