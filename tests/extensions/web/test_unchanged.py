"""Answers of the port: compressed from a kilobyte on, and kept only when they cannot change."""

from pathlib import Path

import pytest
from tests.api.login_tab import Tab, play


@pytest.mark.requirement("http:etag")
def test_what_is_known_of_a_run_that_ended_is_not_sent_again(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        await tab.logged_in()
        run_id = (await tab.home.spawn("quick"))["runId"]
        await tab.home.wait(run_id)
        await tab.home.until_phase(run_id, "completed")
        base = f"/v1/runs/{run_id}"
        for path in (base, f"{base}/timeline", f"{base}/result"):
            first = await tab.get(path)
            assert first.headers["cache-control"] == "private, no-cache"
            known = {"If-None-Match": first.headers["etag"]}
            again = await tab.get(path, headers=known)
            assert (again.status_code, again.content) == (304, b""), path
            assert again.headers["etag"] == first.headers["etag"]
            other = await tab.get(path, headers={"If-None-Match": 'W/"other"'})
            assert (other.status_code, other.content) == (200, first.content)
        before = await tab.get(base)
        await tab.home.ok("POST", "/v1/inbox/ack", {"messageIds": [f"{run_id}:announce"]})
        after = await tab.get(base, headers={"If-None-Match": before.headers["etag"]})
        is_same = after.status_code == 304
        assert is_same == ((await tab.get(base)).content == before.content)

    play(tmp_path, scenario)


@pytest.mark.requirement("http:etag")
def test_nothing_else_is_kept_by_a_browser(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        await tab.logged_in()
        run_id = (await tab.home.spawn("hang"))["runId"]
        await tab.home.until_phase(run_id, "running")
        for path in (f"/v1/runs/{run_id}", "/v1/runs", "/v1/runs/none", "/v1/login", "/nope"):
            answered = await tab.get(path)
            assert answered.headers["cache-control"] == "no-store", path
            assert "etag" not in answered.headers

    play(tmp_path, scenario)


@pytest.mark.requirement("http:gzip")
def test_an_answer_of_a_kilobyte_is_compressed_for_whoever_takes_it(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        await tab.logged_in()
        for number in range(4):
            await tab.home.spawn("hang", label=f"run-{number}")
        answered = await tab.get("/v1/runs")
        assert answered.headers["content-encoding"] == "gzip"
        sent, whole = int(answered.headers["content-length"]), len(answered.content)
        assert whole > 1024
        assert sent < whole / 3
        plain = await tab.get("/v1/runs", headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert "content-encoding" not in (await tab.get("/v1/login")).headers
        async with tab.stream("GET", "/v1/events") as stream:
            assert "content-encoding" not in stream.headers

    play(tmp_path, scenario)
