"""Links by which a teammate looks: who opens them, from where, and when that is over."""

import asyncio
import logging
from pathlib import Path
from typing import Final

import pytest
from tests.api.login_tab import Tab, at, play
from tests.extensions.web.test_tcp import certified, trusting, with_tls

from subagents.api.calls.services import wall_ms
from subagents.extensions.web import tcp_peer
from subagents.extensions.web.logins import FILE_NAME

ON: Final = "[web]\nlinks = true\n"
HOUR_MS: Final = 3_600_000
LINK: Final = {"role": "viewer", "validFor": "24h"}


@pytest.mark.requirement("link:off")
def test_links_are_off_until_the_user_turns_them_on_and_hold_for_a_week_at_most(
    tmp_path: Path,
) -> None:
    async def refused(tab: Tab) -> None:
        status, answered = await tab.home.call("POST", "/v1/login/codes", LINK)
        assert (status, answered["message"]) == (403, "links are off")
        assert "[web] links = true" in answered["hint"]
        assert await tab.home.ok("GET", "/v1/logins") == {"logins": [], "hasLinks": False}

    async def bounded(tab: Tab) -> None:
        bad = ({"role": "operator"}, {"validFor": "7d1s"}, {"validFor": "0s"}, {"validFor": "x"})
        for each in bad:
            assert (await tab.home.call("POST", "/v1/login/codes", {**LINK, **each}))[0] == 422
        run_id = (await tab.home.spawn("hang"))["runId"]
        await tab.home.until_phase(run_id, "running")
        for me in (tab.home.worker(run_id), {"X-Subagents-Caller": "agent"}):
            assert (await tab.home.call("POST", "/v1/login/codes", LINK, me))[0] == 403
        assert await tab.home.ok("GET", "/v1/logins") == {"logins": [], "hasLinks": True}

    play(tmp_path / "off", refused)
    play(tmp_path / "on", bounded, more=ON)


@pytest.mark.requirement("link:once")
def test_a_link_logs_one_browser_in_with_a_new_cookie_until_its_time_and_is_in_no_log_and_no_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario(tab: Tab) -> None:
        code, made = await tab.link(**LINK)
        (row,) = (await tab.home.ok("GET", "/v1/logins"))["logins"]
        assert (row["loginId"], row["endsAt"]) == (made["loginId"], made["expiresAt"])
        assert (row["isLink"], row["isOpened"], row["browser"]) == (True, False, "")
        name = f"subagents-{tab.base_url.port}"
        for planted in (code, "x" * 43):
            assert await tab.status("GET", "/v1/runs", Cookie=f"{name}={planted}") == 401
        tab.cookies.set(name, "x" * 43, domain="127.0.0.1", path="/")
        at(tab.home, lambda: wall_ms() + 20 * HOUR_MS)
        answered = await tab.log_in(code)
        assert answered.json()["role"] == "viewer"
        cookie = answered.headers["set-cookie"]
        assert f"{name}=xxx" not in cookie
        seconds = int(cookie.lower().partition("max-age=")[2].partition(";")[0])
        assert 0 < seconds <= 24 * 3600, "no longer than the link"
        assert (await tab.log_in(code)).status_code == 401
        value = cookie.partition("=")[2].partition(";")[0]
        kept = (tab.home.services.paths.state_dir / FILE_NAME).read_text()
        for secret in (code, value):
            assert secret not in kept + str(await tab.home.ok("GET", "/v1/logins"))
            assert secret not in str(await tab.home.ok("GET", "/v1/diagnostics"))
            logged = [each for each in caplog.records if each.name.startswith("subagents")]
            assert secret not in str([each.getMessage() for each in logged])
        mine = {"Cookie": f"{name}={value}"}
        assert await tab.status("GET", "/v1/runs", **mine) == 200
        assert await tab.status("GET", "/v1/config", **mine) == 403
        at(tab.home, lambda: wall_ms() + 24 * HOUR_MS)
        assert await tab.status("GET", "/v1/runs", **mine) == 401

    play(tmp_path, scenario, more=ON)


@pytest.mark.requirement("link:ends")
@pytest.mark.parametrize("how", ["revoked", "its time is up"])
def test_the_stream_that_a_viewers_page_has_open_ends_with_its_link(
    tmp_path: Path, how: str
) -> None:
    async def scenario(tab: Tab) -> None:
        code, made = await tab.link(**LINK)
        await tab.opened(code)
        if how != "revoked":
            at(tab.home, lambda: wall_ms() + 24 * HOUR_MS - 2_000)
        async with tab.stream("GET", "/v1/events") as stream, asyncio.timeout(40):
            lines = stream.aiter_lines()
            assert (await anext(lines)).startswith("retry:")
            if how == "revoked":
                await tab.home.ok("DELETE", f"/v1/logins/{made['loginId']}")
            assert [each async for each in lines if each.startswith("data")] == []
        assert await tab.status("GET", "/v1/runs") == 401

    play(tmp_path, scenario, more=ON)


@pytest.mark.requirement("link:revoked")
def test_a_link_that_is_revoked_before_anybody_opened_it_opens_nothing(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        code, made = await tab.link(**LINK)
        await tab.home.ok("DELETE", f"/v1/logins/{made['loginId']}")
        assert (await tab.log_in(code)).status_code == 401

    play(tmp_path, scenario, more=ON)


@pytest.mark.requirement("link:off")
def test_a_link_outlives_the_daemon_but_not_its_being_turned_off(tmp_path: Path) -> None:
    codes: list[str] = []

    async def make(tab: Tab) -> None:
        codes.extend([(await tab.link(**LINK))[0] for _ in range(2)])

    async def goes_on(tab: Tab) -> None:
        assert (await tab.log_in(codes[0])).status_code == 200

    async def is_over(tab: Tab) -> None:
        assert (await tab.home.ok("GET", "/v1/logins"))["logins"] == []
        assert (await tab.log_in(codes[1])).status_code == 401

    play(tmp_path, make, more=ON)
    play(tmp_path, goes_on, more=ON)
    play(tmp_path, is_over)


@pytest.mark.requirement("link:where")
@pytest.mark.parametrize("owner", [None, 65_534], ids=["another machine", "another user"])
def test_over_tls_a_link_opens_from_anywhere_and_nothing_else_does_and_over_plain_tcp_not_even_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int | None
) -> None:
    def from_there() -> None:
        monkeypatch.setattr(tcp_peer, "owner_of", lambda *_: owner)

    async def over_tls(tab: Tab) -> None:
        code, (link, _) = await tab.code(), await tab.link(**LINK)
        own = await tab.log_in(await tab.code())
        from_there()
        async with Tab(tab.home, verify=trusting(found)) as far:
            assert (await far.log_in(code)).status_code == 401
            cookie = own.headers["set-cookie"]
            assert "Secure" in cookie
            mine = {"Cookie": cookie.partition(";")[0]}
            assert await far.status("GET", "/v1/runs", **mine) == 401
            assert (await far.opened(link))["role"] == "viewer"
            assert await far.status("GET", "/v1/runs") == 200
            assert await far.status("GET", "/v1/config") == 403
            assert await far.status("POST", "/v1/login/codes") == 403
        monkeypatch.undo()
        async with Tab(tab.home, verify=trusting(found)) as near:
            assert (await near.log_in(code)).status_code == 200, "nobody far away used it up"

    async def over_plain_tcp(tab: Tab) -> None:
        (link, _), (other, _) = await tab.link(**LINK), await tab.link(**LINK)
        await tab.opened(other)
        from_there()
        async with Tab(tab.home, cookies=tab.cookies) as far:
            answered = await far.log_in(link)
            assert (answered.status_code, answered.json()["details"]) == (
                403,
                {"guardrail": "user"},
            )
            assert await far.status("GET", "/v1/runs") == 403
        monkeypatch.undo()
        assert (await tab.log_in(link)).status_code == 200

    found = certified(tmp_path, "127.0.0.1")
    settings = with_tls(found, "127.0.0.1")
    play(tmp_path / "tls", over_tls, more=ON, settings=settings, verify=trusting(found))
    play(tmp_path / "plain", over_plain_tcp, more=ON)
