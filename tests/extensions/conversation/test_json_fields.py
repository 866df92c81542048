"""Fields of other programs' JSON: what is of the wrong type is taken for absent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.extensions.conversation.json_fields import (
    count_at,
    list_at,
    table_at,
    tables_at,
    text_at,
    texts_at,
    value_at,
)

TABLE = {"text": "a", "count": 3, "table": {"b": 1}, "list": ["x", {"c": 2}, 4]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    max_leaves=5,
)


@pytest.mark.requirement("conversation:stream:garbage")
def test_a_field_of_its_type_is_read() -> None:
    assert value_at(TABLE, "count") == 3
    assert text_at(TABLE, "text") == "a"
    assert count_at(TABLE, "count") == 3
    assert table_at(TABLE, "table") == {"b": 1}
    assert list_at(TABLE, "list") == TABLE["list"]
    assert texts_at(TABLE, "list") == ["x"]
    assert tables_at(TABLE, "list") == [{"c": 2}]


@pytest.mark.requirement("conversation:stream:garbage")
@given(JSON)
def test_nothing_that_json_can_say_raises(value: object) -> None:
    for table in (value, {"k": value}):
        assert isinstance(text_at(table, "k"), str)
        assert isinstance(table_at(table, "k"), dict)
        assert isinstance(list_at(table, "k"), list)
        assert all(isinstance(each, str) for each in texts_at(table, "k"))
        assert all(isinstance(each, dict) for each in tables_at(table, "k"))
        assert (count_at(table, "k") or 0) >= 0
