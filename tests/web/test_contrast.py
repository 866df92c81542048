"""The words of buttons can be read in every state, light and dark."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.e2e.live_home import LiveHome
from tests.web.conftest import Browsers

LEAST: Final = 4.5
"""WCAG 2.2, 1.4.3; of what is disabled it asks for none, and we want it read all the same."""
CONTRAST: Final = """
(button) => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const light = (layers) => {
    for (const each of layers) { canvas.fillStyle = each; canvas.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((each) => {
      const part = each / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const layers = [];
  for (let each = button; each !== null; each = each.parentElement) {
    layers.unshift(getComputedStyle(each).backgroundColor);
  }
  const ground = light(["white", ...layers]);
  const words = light(["white", ...layers, getComputedStyle(button).color]);
  const [darker, lighter] = [ground, words].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}
"""
BUTTONS: Final = {
    "primary": "main button.primary",
    "danger": "main button.danger",
    "plain": "header.bar button.plain",
    "asks": "header.bar button.need",
    "link": "header.bar .button",
    "other": ".actions button:not([class])",
}
IN_THE_BOX: Final = {
    "start": ".start-task button.primary",
    "parameters": ".start-task button:not(.primary)",
    "chosen agent": "[role=option][aria-selected=true] .note",
    "other agent": "[role=option][aria-selected=false] .note",
}
STATES: Final = ("at rest", "hover", "focus", "active", "disabled")


@contextmanager
def in_state(page: Page, button: Locator, state: str) -> Iterator[None]:
    page.mouse.move(0, 0)
    if state == "disabled":
        button.evaluate("(each) => { each.disabled = true; }")
    elif state == "focus":
        button.focus()
    elif state != "at rest":
        button.hover()
    if state == "active":
        page.mouse.down()
    yield
    if state == "active":
        page.mouse.move(0, 0)  # released elsewhere, it is no click
        page.mouse.up()
    button.evaluate("(each) => { each.disabled = false; each.blur(); }")


@pytest.mark.requirement("web:contrast")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_button_can_be_read_in_every_state(
    home: LiveHome, browsers: Browsers, theme: Any
) -> None:
    run = home.spawn("sleep 600", label="asks")
    home.until_phase(run, "running")
    home.post("/v1/requests", {"runId": run, "question": "which?"})
    page = browsers.at_the_page(color_scheme=theme, reduced_motion="reduce")
    page.goto(f"{page.evaluate('location.origin')}/ui/runs/{run}")
    expect(page.get_by_role("heading", name="which?")).to_be_visible()
    assert _unread(page, BUTTONS) == []
    page.keyboard.press("Control+k")
    page.keyboard.type("> true")
    expect(page.get_by_role("button", name="Start it")).to_be_enabled()
    assert _unread(page, IN_THE_BOX) == []


def _unread(page: Page, buttons: Mapping[str, str]) -> list[str]:
    unread = []
    for kind, selector in buttons.items():
        button = page.locator(selector).first
        for state in STATES:
            with in_state(page, button, state):
                contrast = button.evaluate(CONTRAST)
            if contrast < LEAST:
                unread.append(f"{kind}, {state}: {contrast:.1f}")
    return unread
