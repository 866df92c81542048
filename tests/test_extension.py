"""What extensions there are, and what one that breaks keeps from working: itself alone."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from subagents import extension
from subagents.extension import Extension


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Entry points of other packages, as the test fills them."""
    there: list[Any] = []
    monkeypatch.setattr(extension, "_entry_points", lambda: iter(there))
    extension.found.cache_clear()
    yield there
    extension.found.cache_clear()


def point(name: str, given: object) -> Any:
    def load() -> object:
        if isinstance(given, BaseException):
            raise given
        return given

    return SimpleNamespace(name=name, value=f"{name}:extension", load=load)


@pytest.mark.requirement("extensions:found")
def test_ours_come_first_and_in_their_order_and_then_those_of_others(points: list[Any]) -> None:
    points += [point("acme", Extension("acme"))]

    assert [each.name for each in extension.found().used] == [*extension.OWN, "acme"]


@pytest.mark.requirement("extensions:refused")
@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("acme", ValueError("no licence"), "ValueError: no licence"),
        ("acme", SystemExit(3), "SystemExit: 3"),
        ("acme", "words", "TypeError: acme:extension is no subagents.extension.Extension"),
        ("acme", Extension("other"), "ValueError: its name is 'other', not the entry point's"),
        ("web", Extension("web"), "ValueError: another extension has its name"),
    ],
)
def test_one_that_is_none_is_refused_with_the_reason(
    points: list[Any], name: str, given: object, says: str
) -> None:
    points += [point(name, given)]

    (refused,) = extension.found().refused
    assert refused == (name, says)
    assert [each.name for each in extension.found().used] == [*extension.OWN]


@pytest.mark.requirement("extensions:refused")
def test_a_hook_of_anothers_that_breaks_adds_nothing_and_ours_is_raised(
    points: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    points += [point("acme", Extension("acme", checks="acme_nowhere:checks"))]

    def asked(target: str) -> Any:
        raise ImportError(target) if "acme" in target else LookupError(target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "loaded", lambda _target: lambda: ["found"])
        assert [name for name, _ in extension.made("checks")][-1] == "acme"
        patch.setattr(
            extension,
            "loaded",
            lambda target: (lambda: ["found"]) if "acme" not in target else asked(target),
        )
        assert "acme" not in dict(extension.made("checks"))
        assert "the extension acme adds nothing: its checks broke" in caplog.text
        patch.setattr(extension, "loaded", asked)
        with pytest.raises(LookupError):
            list(extension.made("checks"))


def none_at_all() -> None:
    """A hook that forgot to return something."""


def late() -> Iterator[object]:
    """A hook that breaks when it is read."""
    raise LookupError("no licence")
    yield


@pytest.mark.requirement("extensions:refused")
@pytest.mark.parametrize("hook", ["none_at_all", "late"])
def test_a_hook_of_anothers_that_breaks_when_what_it_gave_is_read_adds_nothing(
    points: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    hook: str,
) -> None:
    monkeypatch.setattr(extension, "GROUP", "subagents.no_extensions")
    points += [point("acme", Extension("acme", couriers=f"{__name__}:{hook}"))]

    assert list(extension.made("couriers")) == []
    assert "the extension acme adds nothing: its couriers broke" in caplog.text


@pytest.mark.requirement("extensions:refused")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Extension("acme", routes=("acme_nowhere",)), "ModuleNotFoundError"),
        (Extension("acme", checks="acme_nowhere:checks"), "ModuleNotFoundError"),
        (Extension("acme", couriers=__name__), "no attribute ''"),
    ],
)
def test_what_is_broken_of_anothers_is_known_without_using_it(
    points: list[Any], given: Extension, says: str
) -> None:
    points += [point("acme", given)]

    (problem,) = extension.problems()
    assert problem.name == "acme"
    assert says in problem.reason


@pytest.mark.requirement("extensions:found")
def test_a_copy_of_the_core_alone_has_none(
    points: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "GROUP", "subagents.no_extensions")

    assert extension.found().used == ()
