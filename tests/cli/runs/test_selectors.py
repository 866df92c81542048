"""Selectors of several runs name all of them, however many there are."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from subagents.cli.runs import selectors
from subagents.client.client import Client

PAGE = 10


class Listed(Client):
    """A daemon's list of runs, which may change before each page."""

    def __init__(self, ids: Sequence[str], before_page: Callable[[list[str], int], None]) -> None:
        self._ids = list(ids)
        self._before_page = before_page
        self._pages = 0
        self.daemon_version = None

    def get(  # type: ignore[override]  # only what a list asks for
        self, _path: str, query: Mapping[str, object]
    ) -> dict[str, object]:
        self._before_page(self._ids, self._pages)
        self._pages += 1
        limit, offset = query["limit"], query["offset"]
        assert isinstance(limit, int)
        assert isinstance(offset, int)
        shown = self._ids[offset : offset + limit]
        return {"runs": [{"runId": each} for each in shown], "total": len(self._ids)}


def nothing(_ids: list[str], _page: int) -> None:
    pass


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "PAGE", PAGE)


@pytest.mark.requirement("cli:selectors")
@pytest.mark.parametrize("count", [1, 9, 10, 11, 19, 20, 57, 2_500])
def test_a_selector_names_every_run_on_every_page(count: int) -> None:
    ids = [f"r-{number}" for number in range(count)]
    assert selectors.expand(Listed(ids, nothing), ["phase:queued"]) == ids


@pytest.mark.requirement("cli:selectors")
@pytest.mark.parametrize("leaving", [1, 5, 10, 15, 25])
def test_a_selector_misses_no_run_when_others_leave_the_list_meanwhile(leaving: int) -> None:
    ids = [f"r-{number}" for number in range(60)]

    def leave(listed: list[str], page: int) -> None:
        if page == 3:
            del listed[:leaving]

    found = selectors.expand(Listed(ids, leave), ["phase:queued"])
    assert set(found) >= set(ids[leaving:])
    assert len(found) == len(set(found))


@pytest.mark.requirement("cli:selectors")
def test_a_selector_names_no_run_twice_when_others_are_spawned_meanwhile() -> None:
    ids = [f"r-{number}" for number in range(60)]

    def spawn(listed: list[str], page: int) -> None:
        listed[:0] = [f"r-new-{page}-{number}" for number in range(3)]

    found = selectors.expand(Listed(ids, spawn), ["tree:r-0"])
    assert set(found) >= set(ids)
    assert len(found) == len(set(found))
