"""Browsers log in, call, and are logged out: over a real port."""

import asyncio
from pathlib import Path

import pytest
from tests.api.login_tab import Tab, at, play

from subagents.api.calls.services import wall_ms
from subagents.extensions.web.logins import CODE_MS, FILE_NAME
from subagents.extensions.web.tcp import operator_token

# -- in ------------------------------------------------------------------------------------------


@pytest.mark.requirement("login:cookie")
def test_a_code_is_given_for_a_cookie_that_no_script_reads_and_no_other_site_sends(
    tmp_path: Path,
) -> None:
    async def scenario(tab: Tab) -> None:
        assert await tab.status("GET", "/v1/runs") == 401
        answered = await tab.log_in(await tab.code())
        port = tab.base_url.port
        name, *flags = answered.headers["set-cookie"].split("; ")
        assert name.startswith(f"subagents-{port}=")
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(flags)
        assert not [each for each in flags if each.lower().startswith("domain")]
        assert "access-control-allow-origin" not in answered.headers
        found = answered.json()
        assert await tab.status("GET", "/v1/runs") == 200
        assert (await tab.get("/v1/login")).json() == found
        assert found["role"] == "operator"

    play(tmp_path, scenario)


@pytest.mark.requirement("login:code")
def test_a_code_that_was_used_is_too_old_or_is_none_is_401(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        used, late = await tab.code(), await tab.code()
        assert (await tab.log_in(used)).status_code == 200
        tab.cookies.clear()
        assert (await tab.log_in(used)).status_code == 401
        at(tab.home, lambda: wall_ms() + CODE_MS)
        answered = await tab.log_in(late)
        assert answered.status_code == 401
        assert answered.json()["hint"] == "open the page again: subagents ui"
        operator = operator_token(tab.home.services.paths.state_dir)
        for wrong in ("x" * 43, "", operator):
            assert (await tab.log_in(wrong)).status_code == 401
        assert await tab.status("GET", "/v1/runs") == 401

    play(tmp_path, scenario)


@pytest.mark.requirement("login:origin")
def test_a_login_is_our_own_pages(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        code = await tab.code()
        foreign = (
            "https://evil.example",
            "null",
            f"http://127.0.0.1:{(tab.base_url.port or 0) + 1}",
        )
        for headers in ({}, *({"Origin": each} for each in foreign)):
            answered = await tab.post("/v1/login", json={"code": code}, headers=headers)
            assert answered.status_code == 403, headers
        assert (await tab.log_in(code)).status_code == 200

    play(tmp_path, scenario)


@pytest.mark.requirement("login:token-stays")
def test_the_operators_token_is_in_no_address_and_no_cookie(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        token = operator_token(tab.home.services.paths.state_dir)
        made = await tab.home.ok("POST", "/v1/login/codes")
        assert token not in made["url"]
        await tab.logged_in()
        assert token not in str(list(tab.cookies.jar))
        tab.cookies.clear()
        cookie = f"subagents-{tab.base_url.port}={token}"
        assert await tab.status("GET", "/v1/runs", Cookie=cookie) == 401
        assert await tab.status("GET", f"/v1/runs?token={token}") == 401

    play(tmp_path, scenario)


@pytest.mark.requirement("login:worker")
def test_a_worker_makes_no_code_logs_in_by_no_token_and_sees_no_login(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        home = tab.home
        run_id = (await home.spawn("hang"))["runId"]
        await home.until_phase(run_id, "running")
        me = home.worker(run_id)
        token = me["Authorization"].partition(" ")[2]
        for headers in (me, {**me, "Origin": tab.origin["Origin"]}):
            assert await tab.status("POST", "/v1/login/codes", **headers) == 403
        assert (await home.call("POST", "/v1/login/codes", {}, me))[0] == 403
        agent = {"X-Subagents-Caller": "agent"}
        assert (await home.call("POST", "/v1/login/codes", {}, agent))[0] == 403
        assert (await tab.log_in(token)).status_code == 401
        assert (
            await tab.status("GET", "/v1/runs", Cookie=f"subagents-{tab.base_url.port}={token}")
            == 401
        )
        for path in ("/v1/login", "/v1/logins"):
            assert await tab.status("GET", path, **me) == 403
        assert await tab.status("DELETE", "/v1/logins/w-1", **me) == 403

    play(tmp_path, scenario)


# -- with a login --------------------------------------------------------------------------------


@pytest.mark.requirement("login:csrf")
def test_a_write_needs_our_origin_and_what_only_our_page_can_know(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        answered = await tab.log_in(await tab.code())
        own = {"X-Subagents-CSRF": answered.json()["csrf"], **tab.origin}
        run_id = (await tab.home.spawn("hang"))["runId"]
        await tab.home.until_phase(run_id, "running")
        path = f"/v1/runs/{run_id}/cancel"
        for name in own:
            for value in (None, "", "x", "http://evil.example"):
                headers = {**own, name: value} if value is not None else {}
                assert await tab.status("POST", path, **headers) == 403, headers
        for site in ("cross-site", "same-site"):
            assert await tab.status("POST", path, **own, **{"Sec-Fetch-Site": site}) == 403
            assert await tab.status("GET", "/v1/runs", **{"Sec-Fetch-Site": site}) == 403
        assert (await tab.home.ok("GET", f"/v1/runs/{run_id}/status"))["phase"] == "running"
        own["Sec-Fetch-Site"] = "same-origin"
        assert await tab.status("POST", path, **own) == 200

    play(tmp_path, scenario)


@pytest.mark.requirement("login:operator")
def test_an_operator_spawns_answers_and_cancels_in_the_page(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        await tab.logged_in()
        spec = {"task": "work", "agentId": "hang"}
        made = await tab.post("/v1/runs", json={"spec": spec, "cwd": tab.home.cwd})
        assert made.status_code == 201
        assert await tab.status("POST", f"/v1/runs/{made.json()['runId']}/cancel") == 200

    play(tmp_path, scenario)


# -- out -----------------------------------------------------------------------------------------


@pytest.mark.requirement("login:revoked")
def test_a_revoked_login_is_over_at_once_with_the_stream_that_its_page_has_open(
    tmp_path: Path,
) -> None:
    async def scenario(tab: Tab) -> None:
        found = await tab.logged_in()
        async with Tab(tab.home) as other, tab.stream("GET", "/v1/events") as stream:
            second = await other.logged_in("viewer")
            lines = stream.aiter_lines()
            assert (await anext(lines)).startswith("retry:")
            listed = (await tab.home.ok("GET", "/v1/logins"))["logins"]
            assert [each["loginId"] for each in listed] == [found["loginId"], second["loginId"]]
            await tab.home.ok("DELETE", f"/v1/logins/{found['loginId']}")
            async with asyncio.timeout(40):
                assert [each async for each in lines if each.startswith("data")] == []
            assert await tab.status("GET", "/v1/runs") == 401
            assert await other.status("GET", "/v1/runs") == 200
            assert (await tab.home.call("DELETE", "/v1/logins/w-none"))[0] == 404

    play(tmp_path, scenario)


@pytest.mark.requirement("login:list")
def test_who_is_logged_in_says_what_with_and_when_and_holds_no_secret(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        tab.headers["User-Agent"] = "Firefox/140.0"
        found = await tab.logged_in()
        text = (await tab.get("/v1/logins")).text
        (row,) = (await tab.get("/v1/logins")).json()["logins"]
        assert (row["loginId"], row["isOwn"]) == (found["loginId"], True)
        assert (row["role"], row["browser"]) == ("operator", "Firefox/140.0")
        assert row["createdAt"] <= row["usedAt"] < row["endsAt"]
        kept = (tab.home.services.paths.state_dir / FILE_NAME).read_text()
        for secret in (found["csrf"], *(each.value for each in tab.cookies.jar)):
            assert secret not in text
            assert secret not in kept

    play(tmp_path, scenario)


@pytest.mark.requirement("login:unix-socket")
def test_on_the_unix_socket_nobody_logs_in_or_out(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        home, code = tab.home, await tab.code()
        status, answered = await home.call("POST", "/v1/login", {"code": code})
        assert (status, answered["hint"]) == (422, "open it: subagents ui")
        assert (await home.call("DELETE", "/v1/login"))[0] == 404
        assert await home.ok("GET", "/v1/login") == {
            "loginId": None,
            "role": "operator",
            "csrf": None,
        }
        assert (await home.call("POST", "/v1/login/codes", {"role": "root"}))[0] == 422
        assert (await tab.log_in(code)).status_code == 200

    play(tmp_path, scenario)
