"""Plugins are known by the names of their entry points; nothing of theirs is imported."""

from importlib import metadata

import pytest

from subagents.config.entry_points import entry_points, plugin_names


@pytest.mark.requirement("plugins:names")
def test_a_name_has_every_package_that_claims_it_and_ours_are_no_plugins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def point(name: str, value: str) -> metadata.EntryPoint:
        return metadata.EntryPoint(name, value, "group")

    installed = [
        point("acme", "no_such_module:runtime"),
        point("acme", "no_such_module:runtime"),  # the same, seen twice
        point("acme", "other:runtime"),
        point("codex", "mine:runtime"),
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda **_: installed)

    assert [each.value for each in entry_points("group")["acme"]] == [
        "no_such_module:runtime",
        "other:runtime",
    ]
    assert plugin_names("group") == ("acme",)
