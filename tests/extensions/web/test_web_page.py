"""The page's files: who gets them, how long they are kept, and what a page may do."""

import asyncio
import gzip
import re
from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest
from scripts.web_page import pack
from starlette.types import Receive, Scope, Send
from tests.api.login_tab import Tab, play

from subagents.extensions.web.web_page import FOREVER, POLICY, WebPage

SCRIPT = "const sentence = 'a page of some length';\n" * 100


def files(root: Path) -> Path:
    """What a build makes of a page, where the daemon looks for it."""
    built = root / "dist"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html><title>subagents</title>")
    (built / "icon.svg").write_text("<svg/>")
    (built / "assets" / "index-4f.js").write_text(SCRIPT)
    (built / "assets" / "notes.txt").write_text("no part of a page")
    place = root / "static"
    pack(built, place)
    return place


def get(
    folder: Path, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
) -> httpx2.Response | None:
    """The answer to one request; None = it is no business of the page."""

    async def off_loop(work):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  in line
        return work()

    async def whole() -> httpx2.Response | None:
        page = WebPage(off_loop, folder)
        if not page.answers({"method": method, "path": path}):
            return None

        async def as_sent(scope: Scope, receive: Receive, send: Send) -> None:
            await page({**scope, "path": path}, receive, send)  # no client resolves it

        transport = httpx2.ASGITransport(as_sent)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            client.headers.pop("accept-encoding")
            return await client.request(method, path, headers=dict(headers or {}))

    return asyncio.run(whole())


@pytest.mark.requirement("page:files")
def test_an_asset_is_kept_for_ever_and_the_page_is_asked_for_each_time(tmp_path: Path) -> None:
    folder = files(tmp_path)
    asset, page = get(folder, "/ui/assets/index-4f.js"), get(folder, "/ui/")
    assert asset is not None
    assert page is not None
    assert (asset.text, asset.headers["cache-control"]) == (SCRIPT, FOREVER)
    assert asset.headers["content-type"] == "text/javascript; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    again = get(folder, "/ui/", headers={"If-None-Match": page.headers["etag"]})
    assert again is not None
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.requirement("page:files")
def test_a_file_is_compressed_when_it_is_built_and_sent_as_it_lies_there(tmp_path: Path) -> None:
    folder = files(tmp_path)
    packed = (folder / "assets" / "index-4f.js.gz").read_bytes()
    assert gzip.decompress(packed).decode() == SCRIPT
    assert len(packed) < len(SCRIPT) / 10
    found = get(folder, "/ui/assets/index-4f.js", headers={"Accept-Encoding": "gzip"})
    assert found is not None
    assert found.headers["content-encoding"] == "gzip"
    assert int(found.headers["content-length"]) == len(packed)


@pytest.mark.requirement("page:paths")
def test_below_its_place_every_address_is_the_pages_and_elsewhere_none(tmp_path: Path) -> None:
    folder = files(tmp_path)
    for path in ("/ui/", "/ui/runs/r-1", "/ui/a/b/c", "/ui/assets/notes.txt"):
        found = get(folder, path)
        assert found is not None
        assert "<title>subagents</title>" in found.text, path
    for path in ("/", "/ui"):
        found = get(folder, path)
        assert found is not None
        assert (found.status_code, found.headers["location"]) == (307, "/ui/")
    for path in ("/v1/runs", "/uix", "/nope", "/mcp", "/index.html"):
        assert get(folder, path) is None
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert get(folder, "/ui/", method) is None


@pytest.mark.requirement("page:paths")
@pytest.mark.parametrize("name", ["assets/gone-00.js", "gone.svg"])
def test_a_file_that_is_not_there_is_404(tmp_path: Path, name: str) -> None:
    found = get(files(tmp_path), f"/ui/{name}")
    assert found is not None
    assert (found.status_code, found.json()["code"]) == (404, "not_found")


@pytest.mark.requirement("page:paths")
@pytest.mark.parametrize("way", ["../", "assets/../../", "/", "..//", ".%2e/", "assets/..\\..\\"])
def test_no_address_leads_out_of_the_folder(tmp_path: Path, way: str) -> None:
    folder = files(tmp_path)
    (tmp_path / "secret.js.gz").write_bytes(gzip.compress(b"not for you"))
    found = get(folder, f"/ui/{way}secret.js")
    assert found is not None
    assert "<title>subagents</title>" in found.text


@pytest.mark.requirement("page:policy")
def test_the_page_may_load_nothing_from_elsewhere_and_run_no_inline_script(tmp_path: Path) -> None:
    folder = files(tmp_path)
    for path in ("/ui/", "/", "/ui/assets/index-4f.js", "/ui/assets/gone.js"):
        found = get(folder, path)
        assert found is not None
        assert found.headers["content-security-policy"] == POLICY
        assert found.headers["referrer-policy"] == "no-referrer"
    rules = dict(each.split(" ", 1) for each in POLICY.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert rules["trusted-types"] == "layout", "one policy, made in web/src/live/layout.ts"
    assert {value for name, value in rules.items() if name.endswith("-src")} == {"'none'", "'self'"}
    assert not re.search(r"unsafe|https?:|data:|\*", POLICY)


@pytest.mark.requirement("page:missing")
def test_an_installation_without_the_page_says_so_and_how_to_get_it(tmp_path: Path) -> None:
    found = get(tmp_path / "nothing", "/ui/runs")
    assert found is not None
    assert (found.status_code, found.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "install subagents again" in found.text
    assert "script" not in found.text
    assert found.headers["content-security-policy"] == POLICY


@pytest.mark.requirement("page:no-data")
def test_everybody_who_reaches_the_port_gets_the_page_and_no_data(tmp_path: Path) -> None:
    async def scenario(tab: Tab) -> None:
        await tab.home.spawn("hang", label="a-label-that-nobody-sees")
        for path in ("/", "/ui/", "/ui/runs"):
            answered = await tab.get(path, follow_redirects=True)
            assert "a-label-that-nobody-sees" not in answered.text
            assert answered.headers["x-content-type-options"] == "nosniff"
        assert await tab.status("GET", "/ui/", Host="evil.example") == 421
        assert await tab.status("GET", "/ui/", Origin="http://evil.example") == 403
        for path in ("/nope", "/index.html", "/v1/runs"):
            answered = await tab.get(path, headers={"Accept": "text/html"})
            assert (answered.status_code, answered.json()["code"]) == (401, "unauthorized")

    play(tmp_path, scenario)
