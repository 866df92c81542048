"""Text of workers in the page: shown as it is, never obeyed, and the page stays in its place.

Each kind of text stands in each place where it can come from: a label has no control characters and
at most 255 letters, a file name 255 bytes, a branch is made of letters of the label, a question has
a length, too. What a place refuses is named here.
"""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.live_home import LiveHome
from tests.repository import a_repository
from tests.web.conftest import Browsers
from tests.web.test_accessibility import SIDEWAYS

from subagents.errors import UsageError

MARKUP: Final = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
TURNED: Final = "rtl-\u202egnp.exe"
COLOURED: Final = "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \x1b[2J"
ADDRESS: Final = "javascript:alert(1) data:text/html,<b>x</b> https://example.org/x"
LONG: Final = "a" * 1_000_000
HALF: Final = "half \ud83d of a pair"
TEXTS: Final = {
    "markup": MARKUP,
    "turned": TURNED,
    "coloured": COLOURED,
    "address": ADDRESS,
    "long": LONG,
    "half": HALF,
}
MORE: Final = (pytest.mark.tier("all"),)
REFUSED: Final = {
    *(("label", each) for each in ("coloured", "long", "half")),
    *(("tag", each) for each in ("coloured", "long", "half")),
    *(("task", each) for each in ("half",)),
    *(("question", each) for each in ("long", "half")),
}
"""Places that do not take a text at all."""
NOT_TAKEN: Final = (UsageError, UnicodeEncodeError)
"""By the daemon, or by JSON itself: it has no half of a pair."""
FILE_BYTES: Final = 200
TABS: Final = ("", "/transcript", "/timeline", "/tree", "/changes", "/messages", "/raw")
OF_A_QUESTION: Final = ("", "/messages")
LISTS: Final = ("", "runs", "inbox", "plans", "sessions", "alerts", "cost", "search?grep=.")
HARMED: Final = """
() => [window.hacked ?? 0, document.querySelectorAll("main img, main script, main b.x").length,
       document.querySelectorAll("[style]").length]
"""
WATCH: Final = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => window.violations.push(event.blockedURI));
"""
RAW: Final = r"""
() => [document.title, document.body.innerText,
       ...[...document.querySelectorAll("[aria-label], [title]")]
         .map((each) => `${each.getAttribute("aria-label")} ${each.getAttribute("title")}`)]
  .filter((each) => /[\x1b\u202a-\u202e\u2066-\u2069]|\p{Surrogate}/u.test(each))
  .map((each) => each.slice(0, 200))
"""
"""What would turn what stands around it, where it should be a mark."""
ADDRESSES: Final = r"""
() => [...document.querySelectorAll("a[href]")].map((each) => each.href)
  .filter((each) => !/^https?:\/\//.test(each))
"""


class Said(NamedTuple):
    """Runs that say one text wherever they can."""

    ended: str
    asks: str


@pytest.mark.requirement("web:hostile-text")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in {"markup", "turned", "long"} else MORE)
        for name in TEXTS
    ],
)
def test_hostile_text_is_text_in_every_place_it_can_come_from(
    home: LiveHome, browsers: Browsers, name: str
) -> None:
    said = _said_everywhere(home, name)
    page = browsers.tab(viewport={"width": 1100, "height": 800})
    page.add_init_script(WATCH)
    browsers.open_page(page)
    page.wait_for_selector(".shell")
    runs = [f"runs/{said.ended}{tab}" for tab in TABS]
    runs += [f"runs/{said.asks}{tab}" for tab in OF_A_QUESTION]
    runs += [f"compare?a={said.ended}&b={said.asks}"]
    for place in (*LISTS, *runs):
        page.goto(f"{_origin(page)}/ui/{place}")
        expect(
            page.locator("main").locator("section, ul, form, .empty, .box").first
        ).to_be_visible()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        _looks_harmless(page, place)
    page.keyboard.press("Control+k")
    expect(page.locator("[role=option] .chip").first).to_be_visible()
    _looks_harmless(page, "the box")
    if name == "turned":
        page.goto(f"{_origin(page)}/ui/runs/{said.asks}")
        for each in ("h1", ".asked", ".option"):
            expect(page.locator(each).locator(".mark", has_text="U+202E").first).to_be_visible()


def _said_everywhere(home: LiveHome, name: str) -> Said:
    text = TEXTS[name]
    files = home.work / "said"
    files.mkdir()
    # Bytes as a worker of any language writes them, the half of a pair among them.
    (files / "plain").write_bytes(text.encode("utf-8", "surrogatepass") + b"\n")
    file = _file_name(text)
    (home.work / file).write_text("x")
    events = [
        {"subagents": "text", "text": text},
        {"subagents": "progress", "phase": text[:200], "percentComplete": 40},
        {"subagents": "tool", "name": "Bash", "id": "1", "input": {"command": text}},
        {
            "subagents": "tool",
            "name": "Bash",
            "id": "1",
            "status": "ended",
            "output": text,
            "exitCode": 1,
            "isError": True,
        },
        {
            "subagents": "report",
            "summary": text[:4000],
            "artifacts": [{"path": file, "description": text[:200]}],
        },
        {"subagents": "result", "text": text},
    ]
    (files / "events").write_text("".join(f"{json.dumps(each)}\n" for each in events))
    script = f"cat {files}/plain {files}/plain >&2; cat {files}/plain {files}/events"
    spec: dict[str, Any] = {"verification": {"artifacts": [{"path": file}, {"path": "none"}]}}
    for place, value in (("label", text), ("tag", text)):
        key = {"tag": "tags"}.get(place, place)
        given = [value] if key == "tags" else value
        if _is_taken(home, place, name, {key: given}):
            spec[key] = given
    task = script
    if ("task", name) not in REFUSED:
        task = f"{script}\n: <<'END'\n{text[:100_000]}\nEND"
    ended = home.spawn(task, **spec)
    asks = home.spawn(f"cat {files}/plain; sleep 600", **spec)
    home.wait(ended)
    home.until_phase(asks, "running")
    asked = {"question": text, "context": text, "options": [text[:200], "no"]}
    if ("question", name) in REFUSED:
        with pytest.raises(NOT_TAKEN):
            home.post("/v1/requests", {"runId": asks, **asked})
    else:
        home.post("/v1/requests", {"runId": asks, **asked})
    return Said(ended, asks)


def _is_taken(home: LiveHome, place: str, name: str, spec: dict[str, Any]) -> bool:
    if (place, name) not in REFUSED:
        return True
    with pytest.raises(NOT_TAKEN):
        home.spawn("true", **spec)
    return False


def _file_name(text: str) -> str:
    """As much of it as a name can have."""
    whole = text.replace("/", "-").encode("utf-8", "replace")[:FILE_BYTES]
    return whole.decode("utf-8", "ignore")


@pytest.mark.requirement("web:hostile-text")
def test_only_web_addresses_of_a_transcript_are_links(home: LiveHome, browsers: Browsers) -> None:
    prints = (
        r"printf '<b>bold</b> \033[31mred\033[0m javascript:alert(1) https://example.org/x\n';"
        r" printf '\342\200\256turned \000\n'; exit 3"
    )
    run = home.spawn(prints, agent="command")
    home.wait(run)
    page = browsers.at_the_page()
    page.goto(f"{_origin(page)}/ui/runs/{run}/transcript")

    log = page.get_by_role("log")
    expect(log.get_by_text("<b>bold</b>").last).to_be_visible()
    expect(log.locator(".mark", has_text="U+202E").last).to_be_visible()
    assert set(log.locator(".said").get_by_role("link").all_inner_texts()) == {
        "https://example.org/x"
    }


@pytest.mark.requirement("web:hostile-text")
def test_the_name_of_a_repository_is_no_command(
    home: LiveHome, browsers: Browsers, tmp_path: Path
) -> None:
    """What is copied into a shell quotes it; a branch is made of letters of the label alone."""
    repository = home.work / "shop; touch hacked"
    a_repository(repository)
    run = home.spawn("touch b", label=MARKUP, isolation="worktree", cwd=str(repository))
    home.wait(run)
    page = browsers.at_the_page()
    page.goto(f"{_origin(page)}/ui/runs/{run}/changes")
    shown = page.locator(".command code")
    expect(shown).to_contain_text(f"git -C '{repository}' diff HEAD...subagents/img-src-x")


def _origin(page: Page) -> str:
    return str(page.evaluate("location.origin"))


def _looks_harmless(page: Page, place: str) -> None:
    assert page.evaluate(HARMED) == [0, 0, 0], place
    assert page.evaluate("window.violations") == [], place
    assert page.evaluate(RAW) == [], place
    assert page.evaluate(SIDEWAYS) == [], place
    assert page.evaluate(ADDRESSES) == [], place
