"""A plan with a run for each item and a gate, on a real daemon that is killed again and again."""

from pathlib import Path

import pytest
from tests.e2e.live_home import MARK_ATTEMPT, audit, live_home, until


@pytest.mark.requirement("e2e:kill:for-each")
def test_a_plan_that_is_killed_at_each_of_its_steps_does_each_item_once(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        wait = "until [ -e {} ]; do sleep 0.02; done"
        listing = """printf '%s' '["a", "b; id", {"n": "-c\\n"}]'"""
        specs: list[dict[str, object]] = [
            {"label": "find", "task": f"{wait.format('go')}; {listing}"},
            {
                "label": "fix",
                "forEach": {"run": "find", "maxItems": 3},
                "task": f"{MARK_ATTEMPT}; {wait.format('more')}; printf 'did %s' ${{{{ item }}}}",
            },
            {"label": "ask", "gate": "Ship it?", "dependsOn": "fix"},
            {
                "label": "report",
                "task": "grep did",
                "dependsOn": ["ask", "fix"],
                "includeDependencyResult": True,
            },
        ]
        sh = [{"agentId": "sh", **each} for each in specs]
        answer = home.post("/v1/plans", {"specs": sh, "cwd": str(home.work), "name": "p"})
        find, fix, ask, report = (str(each["runId"]) for each in answer["receipts"])
        home.restart_after_kill()
        (home.work / "go").touch()
        home.finish(find)
        home.restart_after_kill()
        home.until_phase(fix, "ending")
        until(lambda: len(home.marks_written()) == 3, what="the items at work")
        home.restart_after_kill()
        (home.work / "more").touch()
        home.finish(fix)
        home.restart_after_kill()
        yes = {"response": "", "decision": "approve"}
        home.post(f"/v1/requests/{ask}:q1/respond", yes)
        home.restart_after_kill()

        (item,) = home.finish(report)
        assert item["result"] == 'did a\ndid b; id\ndid {"n":"-c\\n"}'
        assert len(set(home.marks_written())) == len(home.marks_written()) == 3
        found = home.get("/v1/plans/p")
        assert (found["status"], found["states"]) == ("ok", {"ok": 7})
        home.stop()
        starts = audit(home).starts
        assert sorted(starts.values()) == [0, 0, 1, 1, 1, 1, 1]
        assert (starts[fix], starts[ask]) == (0, 0)
