"""Logging in with a real browser, and what pages of others can do to it: nothing."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from tests.e2e.live_home import LiveHome
from tests.free_ports import free_port
from tests.web.conftest import LOG_IN, REBOUND, Browsers
from tests.web.stage import staged

CALL: Final = """
async ([method, path, headers]) => (await fetch(path, {method, headers})).status
"""
OWN_WRITE: Final = """
async (path) => {
  const {csrf} = await (await fetch("/v1/login")).json();
  return (await fetch(path, {method: "POST", headers: {"X-Subagents-CSRF": csrf}})).status;
}
"""
LATER: Final = """
(attempt) => {
  const tries = {
    "eval('1 + 1')": () => eval("1 + 1"),
    "document.body.innerHTML": () => { document.body.innerHTML = "<img src=x>"; },
    "a script": () => { document.createElement("script").text = "1"; },
    "a worker": () => new Worker("data:text/javascript,1"),
    "another policy": () => trustedTypes.createPolicy("another", {createScriptURL: (url) => url}),
  };
  // Later, since what a debugger evaluates is above the page's policy.
  return new Promise((resolve) => setTimeout(() => {
    try { tries[attempt](); resolve("done"); } catch (error) { resolve(error.name); }
  }));
}
"""
FOREIGN: Final = {
    "a fetch with our cookie": """
async ([url, path]) => {
  const options = {method: "POST", credentials: "include", body: "{}"};
  return await fetch(url + path, options).then(() => "read", () => "refused");
}""",
    "a fetch that does not want to read": """
async ([url, path]) => {
  const options = {method: "POST", mode: "no-cors", credentials: "include", body: "{}"};
  return await fetch(url + path, options).then((answer) => answer.type, () => "refused");
}""",
    "a fetch with our header": """
async ([url, path]) => {
  const headers = {"X-Subagents-CSRF": "x", "Content-Type": "application/json"};
  const options = {method: "POST", credentials: "include", headers, body: "{}"};
  return await fetch(url + path, options).then(() => "read", () => "refused");
}""",
    "a form": """
([url, path]) => new Promise((resolve) => {
  const frame = Object.assign(document.createElement("iframe"), {name: "answer"});
  const form = Object.assign(document.createElement("form"), {
    method: "post", action: url + path, target: "answer", enctype: "text/plain",
  });
  frame.onload = () => resolve("sent");
  document.body.append(frame, form);
  form.submit();
})""",
    "a beacon": """
([url, path]) => navigator.sendBeacon(url + path, "{}") ? "sent" : "refused"
""",
    "a WebSocket": """
([url, path]) => new Promise((resolve) => {
  const socket = new WebSocket(url.replace("http", "ws") + path);
  socket.onopen = () => resolve("open");
  socket.onerror = () => resolve("refused");
})""",
    "a read": """
async ([url, path]) => {
  const options = {credentials: "include"};
  return await fetch(url + "/v1/runs", options).then((a) => a.text(), () => "refused");
}""",
    "a stream": """
([url, path]) => new Promise((resolve) => {
  const source = new EventSource(url + "/v1/events", {withCredentials: true});
  source.onopen = () => resolve("open");
  source.onerror = () => { source.close(); resolve("refused"); };
})""",
    "a script": """
([url, path]) => new Promise((resolve) => {
  const script = Object.assign(document.createElement("script"), {src: url + "/v1/runs"});
  script.onload = () => resolve("run");
  script.onerror = () => resolve("refused");
  document.body.append(script);
})""",
    "a login": """
async ([url, path]) => {
  const options = {method: "POST", mode: "no-cors", body: JSON.stringify({code: "x"})};
  return await fetch(url + "/v1/login", options).then((answer) => answer.type, () => "refused");
}""",
}


@contextmanager
def page_of_somebody_else(host: str) -> Iterator[str]:
    """Another server on this machine, and what its page is called."""

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title><body>")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{host}:{server.server_port}/"
        finally:
            server.shutdown()


def other_tab(context: BrowserContext, address: str) -> Page:
    page = context.new_page()
    page.goto(address)
    return page


def origin_of(page: Page) -> str:
    found = urlsplit(page.url)
    return f"{found.scheme}://{found.netloc}"


# -- in and out ----------------------------------------------------------------------------------


@pytest.mark.requirement("login:code")
def test_a_code_logs_one_browser_in_and_no_other(home: LiveHome, browsers: Browsers) -> None:
    address, _, code = browsers.address().partition("#k=")
    address = f"{address}ui/assets/none.js"  # the page would log in by itself
    page = other_tab(browsers.context(), address)

    assert page.evaluate(CALL, ["GET", "/v1/runs", {}]) == 401
    first = page.evaluate(LOG_IN, code)
    assert (first["status"], first["role"]) == (200, "operator")
    assert page.evaluate(CALL, ["GET", "/v1/runs", {}]) == 200

    other = other_tab(browsers.context(), address)
    assert other.evaluate(LOG_IN, code)["status"] == 401
    assert other.evaluate(CALL, ["GET", "/v1/runs", {}]) == 401


@pytest.mark.requirement("login:code")
def test_a_code_is_too_old_after_a_minute(chromium: Browser, tmp_path: Path) -> None:
    with staged(tmp_path, free_port()) as stage, ExitStack() as stack:
        browsers = Browsers(chromium, stage.home, stack)
        stage.at("09:00:00")
        address, _, code = browsers.address().partition("#k=")
        page = other_tab(browsers.context(), f"{address}ui/assets/none.js")
        stage.at("09:01:01")
        assert page.evaluate(LOG_IN, code)["status"] == 401
        stage.at("09:02:00")
        _, _, code = browsers.address().partition("#k=")
        stage.at("09:02:59")
        assert page.evaluate(LOG_IN, code)["status"] == 200


@pytest.mark.requirement("login:code")
def test_a_workers_token_opens_no_page_and_gets_no_code(home: LiveHome, browsers: Browsers) -> None:
    run = home.spawn("sleep 600")
    home.until_phase(run, "running")
    token = home.token_of(run)
    address = browsers.address().partition("#")[0]
    worker = browsers.tab(extra_http_headers={"Authorization": f"Bearer {token}"})
    worker.goto(f"{address}ui/assets/none.js")
    assert worker.evaluate(LOG_IN, token)["status"] == 401
    assert worker.evaluate(CALL, ["GET", "/v1/login", {}]) in {401, 403}
    assert worker.evaluate(CALL, ["POST", "/v1/login/codes", {}]) in {401, 403}
    assert worker.context.cookies() == []


@pytest.mark.requirement("login:cookie")
def test_no_script_reads_the_cookie_and_nothing_holds_the_operators_token(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.logged_in()
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert page.evaluate("document.cookie") == ""
    token = (home.paths.state_dir / "operator.token").read_text().strip()
    kept = page.evaluate("JSON.stringify([localStorage, sessionStorage, location.href])")
    assert token not in kept + cookie["value"]


@pytest.mark.requirement("login:survives-kill")
def test_a_login_goes_on_after_kill_9_and_a_revoked_one_does_not(
    home: LiveHome, browsers: Browsers
) -> None:
    page, other = browsers.logged_in(), browsers.logged_in("viewer")
    (_, second) = home.get("/v1/logins")["logins"]
    with home.client() as client:
        client.delete(f"/v1/logins/{second['loginId']}")
    home.restart_after_kill()
    assert page.evaluate(CALL, ["GET", "/v1/runs", {}]) == 200
    assert other.evaluate(CALL, ["GET", "/v1/runs", {}]) == 401


@pytest.mark.requirement("login:viewer")
def test_a_viewers_page_reads_and_changes_nothing(home: LiveHome, browsers: Browsers) -> None:
    run = home.spawn("sleep 600")
    home.until_phase(run, "running")
    viewer, operator = browsers.logged_in("viewer"), browsers.logged_in()
    assert viewer.evaluate(CALL, ["GET", f"/v1/runs/{run}", {}]) == 200
    assert viewer.evaluate(OWN_WRITE, f"/v1/runs/{run}/cancel") == 403
    viewer.goto(browsers.address("viewer"))
    expect(viewer.get_by_text("You are a viewer: you may look.")).to_be_visible()
    expect(viewer.get_by_text("start a task")).to_have_count(0)
    expect(viewer.get_by_role("link", name="sleep 600")).to_be_visible()
    for key in ("j", "Backspace"):
        viewer.keyboard.press(key)
    expect(viewer.get_by_text("Nothing was done: you are a viewer").last).to_be_visible()
    assert home.row(run)["phase"] == "running"
    assert operator.evaluate(OWN_WRITE, f"/v1/runs/{run}/cancel") == 200


@pytest.mark.requirement("link:off")
def test_where_links_are_off_the_page_offers_none_and_says_how_they_are_turned_on(
    browsers: Browsers,
) -> None:
    page = browsers.at_the_page()

    def off(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "hasLinks": False})

    page.route("**/v1/logins", off)
    page.get_by_role("link", name="System").click()
    expect(page.get_by_text("[web] links = true")).to_be_visible()
    expect(page.get_by_label("how long a reader may look")).to_have_count(0)


@pytest.mark.requirement("link:page")
def test_a_teammates_link_opens_a_page_of_runs_on_which_no_button_acts_until_it_is_ended(
    home: LiveHome, browsers: Browsers
) -> None:
    run = home.spawn("sleep 600", label="long")
    home.until_phase(run, "running")
    home.post("/v1/requests", {"runId": run, "question": "which one?", "options": ["a", "b"]})
    operator = browsers.at_the_page()
    operator.get_by_role("link", name="System").click()
    operator.get_by_label("how long a reader may look").select_option("for a day")
    operator.get_by_role("button", name="Make a link for a reader").click()
    link = operator.locator(".command code", has_text="#k=").inner_text()
    expect(operator.get_by_text("A link that nobody opened yet")).to_be_visible()

    sent: list[str] = []
    reader = browsers.tab()
    reader.on("request", lambda each: sent.append(f"{each.method} {urlsplit(each.url).path}"))
    browsers.open_page(reader, link)
    assert "k=" not in reader.evaluate("location.href + document.referrer")
    ours = f"{origin_of(reader)}/ui/"
    for page in (
        "",
        "runs",
        f"runs/{run}",
        f"runs/{run}/transcript",
        "plans",
        "schedules",
        "inbox",
    ):
        reader.goto(f"{ours}{page}")
        expect(reader.locator("main h1, .heading h1").first).to_be_visible()
        for button in reader.locator("main button:enabled").all():
            if button.is_visible():
                button.click()
                reader.keyboard.press("Escape")
        for key in ("j", *"pisrnvxa", "Backspace", "Delete"):
            reader.keyboard.press(key)
            reader.keyboard.press("Escape")
    assert {each for each in sent if not each.startswith("GET ")} == {"POST /v1/login"}
    assert home.row(run)["phase"] == "running"
    for name in ("Agents", "Cost", "System"):
        expect(reader.get_by_role("link", name=name, exact=True)).to_have_count(0)
    reader.goto(f"{ours}cost")
    expect(reader.get_by_text("You are a viewer", exact=True)).to_be_visible()
    expect(reader.get_by_role("alert")).to_have_count(0)

    for name in ("Runs", "System"):
        operator.get_by_role("link", name=name, exact=True).click()
    row = operator.get_by_role("listitem").filter(has_text="viewer, used")
    row.get_by_role("button", name="Log out").click()
    expect(reader.get_by_role("heading", name="You are not logged in.")).to_be_visible()


@pytest.mark.requirement("login:user")
def test_who_has_another_account_is_told_how_to_get_in(browsers: Browsers) -> None:
    page = browsers.tab()
    refused = {
        "code": "forbidden",
        "message": "this connection belongs to user 1002, and logins are for user 1001",
        "hint": "open the page as the user whose daemon this is, or forward it: ssh -L",
    }
    page.route("**/v1/login", lambda route: route.fulfill(status=403, json=refused))
    page.goto(browsers.address())
    expect(page.get_by_role("heading", name="This page is not open to you.")).to_be_visible()
    expect(page.get_by_text(refused["message"])).to_be_visible()
    expect(page.get_by_text(refused["hint"])).to_be_visible()
    expect(page.get_by_text("subagents ui")).to_have_count(0)


# -- pages of others -----------------------------------------------------------------------------


@pytest.mark.requirement("login:foreign-page")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", REBOUND])
def test_a_page_of_somebody_else_changes_nothing_and_reads_nothing(
    home: LiveHome, browsers: Browsers, host: str
) -> None:
    """The first is on another port of our own host: browsers send it our cookie."""
    run = home.spawn("sleep 600")
    home.until_phase(run, "running")
    page = browsers.logged_in()
    ours = origin_of(page)
    with page_of_somebody_else(host) as address:
        foreign = other_tab(page.context, address)
        for what, script in FOREIGN.items():
            found = foreign.evaluate(script, [ours, f"/v1/runs/{run}/cancel"])
            assert found in {"refused", "opaque", "sent"}, what
    timeline = home.get(f"/v1/runs/{run}/timeline")["events"]
    assert "CancelRequested" not in {each["type"] for each in timeline}
    assert home.row(run)["phase"] == "running"
    assert [each["isOwn"] for each in home.get("/v1/logins")["logins"]] == [False]
    assert page.evaluate(OWN_WRITE, f"/v1/runs/{run}/cancel") == 200, "only the page was foreign"


@pytest.mark.requirement("login:rebound-host")
def test_a_name_that_was_bound_to_us_opens_neither_page_nor_call(
    home: LiveHome, browsers: Browsers
) -> None:
    """The foreign page's own name leads to us now: to its browser we are its own origin."""
    run = home.spawn("sleep 600")
    home.until_phase(run, "running")
    page = browsers.logged_in()
    port = urlsplit(page.url).port
    foreign = page.context.new_page()
    answered = foreign.goto(f"http://{REBOUND}:{port}/ui/")
    assert answered is not None
    assert answered.status == 421
    for method, path in (("POST", f"/v1/runs/{run}/cancel"), ("GET", "/v1/runs"), ("GET", "/ui/")):
        assert foreign.evaluate(CALL, [method, path, {}]) == 421
    code = browsers.address().partition("#k=")[2]
    assert foreign.evaluate(LOG_IN, code)["status"] == 421
    assert home.row(run)["phase"] == "running"


@pytest.mark.requirement("page:policy")
def test_the_page_is_in_no_frame_and_runs_nothing_inline(
    home: LiveHome, browsers: Browsers
) -> None:
    page = browsers.logged_in()
    with page_of_somebody_else("127.0.0.1") as address:
        foreign = other_tab(page.context, address)
        framed = foreign.evaluate(
            """(url) => new Promise((resolve) => {
              const frame = Object.assign(document.createElement("iframe"), {src: url});
              frame.onload = () => {
                try { resolve(frame.contentDocument === null ? "closed" : "open"); }
                catch { resolve("closed"); }
              };
              document.body.append(frame);
            })""",
            f"{origin_of(page)}/ui/",
        )
        assert framed == "closed"
        assert "subagents" not in "".join(
            each.content() for each in foreign.frames if each.url.startswith("http")
        )
    tried = ("eval('1 + 1')", "document.body.innerHTML", "a script", "a worker", "another policy")
    for attempt in tried:
        assert page.evaluate(LATER, attempt) in {"EvalError", "TypeError"}, attempt
