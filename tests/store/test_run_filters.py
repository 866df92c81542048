"""What a filter asks for, where SQL does not say it."""

import msgspec
import pytest

from subagents.store.run_filters import mentions


@pytest.mark.requirement("store:search")
@pytest.mark.parametrize(
    "text", ["ARBEIT", "größe", "stra", 'say "a"', "back\\slash", "line\nbreak"]
)
def test_a_text_is_found_however_json_writes_it(text: str) -> None:
    for task in (
        'Große Arbeit: say "A" back\\slash line\nbreak, Strasse, GRÖSSE größe',
        f"x{text}y",
    ):
        origin = msgspec.json.encode({"spec": {"task": task}})
        assert mentions("r-1", "", origin, text) == (text.casefold() in task.casefold())


@pytest.mark.requirement("store:search")
@pytest.mark.parametrize("origin", [b"{", b"\xff", b"[]", None, "text"])
def test_what_cannot_be_read_mentions_nothing(origin: object) -> None:
    assert not mentions("r-a", None, origin, "a")
    assert mentions("r-1", "A label", origin, "a l")
