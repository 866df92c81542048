"""JSON-RPC lines, read and written."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.extensions.conversation import jsonrpc
from subagents.extensions.conversation.jsonrpc import (
    Failure,
    Notification,
    Request,
    Response,
    Unreadable,
)


@pytest.mark.requirement("runtimes:jsonrpc:reads-every-line")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id":1,"method":"a","params":{"b":2}}', Request(id=1, method="a", params={"b": 2})),
        (b'{"jsonrpc":"2.0","id":"x","method":"a"}', Request(id="x", method="a")),
        (b'{"method":"a","params":null}', Notification(method="a")),
        (b'{"id":null,"method":"a"}', Notification(method="a")),
        (b'{"method":"a","params":[7]}', Notification(method="a", params={"0": 7})),
        (b'{"id":3,"result":null}', Response(id=3)),
        (b'{"id":3.0,"result":{"b":1}}', Response(id=3, result={"b": 1})),
        (
            b'{"id":3,"error":{"code":-32600,"message":"no","data":{"a":1}}}',
            Response(id=3, failure=Failure(code=-32600, message="no", data={"a": 1})),
        ),
        (
            b'{"id":"p","error":{"code":"ENOENT","message":"no git"}}',
            Response(id="p", failure=Failure(code=0, message="no git")),
        ),
        (b'{"id":3,"error":"no"}', Response(id=3, failure=Failure(code=0, message="no"))),
        (
            b'{"id":null,"error":{"code":1}}',
            Response(id=None, failure=Failure(code=1, message="error 1")),
        ),
    ],
)
def test_each_kind_of_message_is_read(line: bytes, message: jsonrpc.Message) -> None:
    assert jsonrpc.decode(line) == message


@pytest.mark.requirement("runtimes:jsonrpc:reads-every-line")
@pytest.mark.parametrize(
    "line", [b"", b"plain", b"[]", b"{}", b'{"id":1}', b'{"method":7}', b"\xff{", b"[" * 100_000]
)
def test_a_line_that_is_no_message_is_a_value_that_says_why(line: bytes) -> None:
    found = jsonrpc.decode(line)

    assert isinstance(found, Unreadable)
    assert found.reason
    assert found.text == line.decode("utf-8", "replace")


@pytest.mark.requirement("runtimes:jsonrpc:reads-every-line")
def test_a_nul_in_a_text_becomes_the_replacement_character() -> None:
    found = jsonrpc.decode(b'{"method":"a","params":{"b":"x\\u0000y"}}')

    assert found == Notification(method="a", params={"b": "x\N{REPLACEMENT CHARACTER}y"})


@pytest.mark.requirement("runtimes:jsonrpc:reads-every-line")
@given(st.binary() | st.from_regex(r'\{"(id|method|result|error)":.{0,20}\}').map(str.encode))
def test_no_line_raises(line: bytes) -> None:
    jsonrpc.decode(line)


@pytest.mark.requirement("runtimes:jsonrpc:writes-with-or-without-version")
def test_lines_are_written_with_the_version_or_without() -> None:
    with_version = jsonrpc.request(1, "a", {"b": "line\nbreak"}, versioned=True)
    without = jsonrpc.notification("a", versioned=False)

    assert b"\n" not in with_version
    assert msgspec.json.decode(with_version)["jsonrpc"] == "2.0"
    assert jsonrpc.decode(with_version) == Request(id=1, method="a", params={"b": "line\nbreak"})
    assert without == b'{"method":"a"}'
    assert jsonrpc.response(1, {}, versioned=False) == b'{"id":1,"result":{}}'
    assert jsonrpc.decode(jsonrpc.failure("q", -32601, "no", versioned=True)) == Response(
        id="q", failure=Failure(code=-32601, message="no")
    )
