"""Both clients speak to a socket as the daemon does, and a missing or odd one is said plainly."""

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.client.peer import http, peer

from subagents import errors
from subagents.client.client import (
    AsyncClient,
    Client,
    Document,
    error_from,
    persistently,
    segment,
)
from subagents.client.daemon_start import answers
from subagents.errors import (
    DaemonUnreachable,
    Forbidden,
    NotFound,
    SubagentsError,
    UsageError,
)


def call_sync(path: Path, target: str = "/x", body: object = None, **options: float) -> Document:
    with Client(path, **options) as client:  # type: ignore[arg-type]  # only timeout_s is a float
        return client.get(target) if body is None else client.post(target, body)


def call_async(path: Path, target: str = "/x", body: object = None, **options: float) -> Document:
    async def run() -> Document:
        async with AsyncClient(path, **options) as client:  # type: ignore[arg-type]  # as above
            return await (client.get(target) if body is None else client.post(target, body))

    return asyncio.run(run())


BOTH = pytest.mark.parametrize("call", [call_sync, call_async], ids=["sync", "async"])
Call = Callable[..., Document]


@pytest.mark.requirement("client:speaks")
@BOTH
def test_a_call_carries_body_session_and_reader_and_gives_the_document(
    tmp_path: Path, call: Call
) -> None:
    with peer(tmp_path, lambda _: http({"runId": "r-1", "text": "é" * 100_000})) as found:
        assert call(found.path, "/v1/runs", {"spec": {"task": "wörk"}})["runId"] == "r-1"
    (request,) = found.requests
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/runs HTTP/1.1\r\n")
    assert b"\r\nx-subagents-session: agent:main:main\r\n" in head
    assert b"\r\nx-subagents-reader: " in head
    assert msgspec.json.decode(body) == {"spec": {"task": "wörk"}}


@pytest.mark.requirement("client:token")
@BOTH
def test_a_workers_token_goes_to_its_own_daemon_and_to_no_other(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_TOKEN", "sa_r-1_1_x")
    with peer(tmp_path, lambda _: http({})) as found:
        for own in (str(found.path), f"{found.path.parent}/./{found.path.name}", "/other", ""):
            monkeypatch.setenv("SUBAGENTS_SOCKET", own)
            call(found.path)
        monkeypatch.delenv("SUBAGENTS_SOCKET")
        call(found.path)
    sent = [b"\r\nauthorization: Bearer sa_r-1_1_x\r\n" in each for each in found.requests]
    assert sent == [True, True, False, False, False]


@pytest.mark.requirement("client:token")
def test_a_token_that_cannot_be_sent_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBAGENTS_SOCKET", "/nowhere")
    monkeypatch.setenv("SUBAGENTS_TOKEN", "hidden\r\nx-evil: 1")
    with pytest.raises(UsageError, match="SUBAGENTS_TOKEN must be printable") as caught:
        Client("/nowhere")
    assert "hidden" not in str(caught.value)


@pytest.mark.requirement("client:speaks")
def test_a_query_is_escaped_and_what_is_none_is_left_out(tmp_path: Path) -> None:
    with peer(tmp_path, lambda _: http({})) as found, Client(found.path) as client:
        client.get(f"/v1/runs/{segment('a/b ?')}", {"label": "x y&z", "phase": None, "limit": 3})
    assert found.requests[0].startswith(b"GET /v1/runs/a%2Fb%20%3F?label=x%20y%26z&limit=3 HTTP")


@pytest.mark.requirement("client:connections")
def test_one_connection_serves_call_after_call(tmp_path: Path) -> None:
    with peer(tmp_path, lambda _: http({})) as found:
        with Client(found.path) as client:
            for _ in range(5):
                client.get("/x")
        assert found.connections == 1

        async def five() -> None:
            async with AsyncClient(found.path) as client:
                for _ in range(5):
                    await client.get("/x")

        asyncio.run(five())
        assert found.connections == 2


@pytest.mark.requirement("client:connections")
def test_concurrent_calls_do_not_wait_for_each_other(tmp_path: Path) -> None:
    together = threading.Barrier(10, timeout=10)

    def reply(_: bytes) -> bytes:
        together.wait()
        return http({"ok": True})

    async def ten(path: Path) -> list[Document]:
        async with AsyncClient(path) as client:
            return await asyncio.gather(*(client.get("/x") for _ in range(10)))

    with peer(tmp_path, reply) as found:
        assert asyncio.run(ten(found.path)) == [{"ok": True}] * 10


@pytest.mark.requirement("client:connections")
def test_a_server_that_closes_after_its_answer_is_connected_to_again(tmp_path: Path) -> None:
    with (
        peer(tmp_path, lambda _: http({}, head="connection: close\r\n")) as found,
        Client(found.path) as client,
    ):
        client.get("/x")
        client.get("/x")
        assert found.connections == 2


@pytest.mark.requirement("client:unreachable")
@BOTH
def test_no_socket_and_a_stale_one_are_said_to_be_no_daemon(tmp_path: Path, call: Call) -> None:
    with pytest.raises(DaemonUnreachable, match="no daemon answers at") as caught:
        call(tmp_path / "none")
    assert caught.value.hint == "start it: subagents up; find out why: subagents doctor"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "stale"))
    stale.close()
    with pytest.raises(DaemonUnreachable, match="Connection refused"):
        call(tmp_path / "stale")
    assert not answers(tmp_path / "stale")


@pytest.mark.requirement("client:unreachable")
def test_nobody_waits_for_a_daemon_that_will_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[DaemonUnreachable] = []

    def call() -> None:
        asked.append(DaemonUnreachable("away", is_lasting=len(asked) == 2))
        raise asked[-1]

    monkeypatch.setattr("subagents.client.client.RECONNECT_POLL_S", 0.0)
    with pytest.raises(DaemonUnreachable) as caught:
        persistently(call, for_s=float("inf"))
    assert caught.value is asked[2]


NOT_OURS = {
    "no http": b"SSH-2.0-OpenSSH\r\n\r\n",
    "no length": b"HTTP/1.1 200 OK\r\n\r\n",
    "negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    "huge length": b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
    "no status": b"HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n",
    "no json": b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<ok>",
    "a list": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 40_000,
}


@pytest.mark.requirement("client:unreachable")
@BOTH
@pytest.mark.parametrize("raw", NOT_OURS.values(), ids=NOT_OURS)
def test_something_else_on_the_socket_is_not_taken_for_a_daemon(
    tmp_path: Path, raw: bytes, call: Call
) -> None:
    with (
        peer(tmp_path, lambda _: raw) as found,
        pytest.raises(DaemonUnreachable, match="is not a subagents daemon"),
    ):
        call(found.path)


@pytest.mark.requirement("client:unreachable")
@BOTH
@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1 200"], ids=["at once", "in the middle"])
def test_a_daemon_that_dies_during_a_call_is_said_to_be_gone(
    tmp_path: Path, raw: bytes, call: Call
) -> None:
    def reply(_: bytes) -> bytes:
        if raw:
            found._open[-1].sendall(raw)
        return b""

    with (
        peer(tmp_path, reply) as found,
        pytest.raises(DaemonUnreachable, match="it closed the connection"),
    ):
        call(found.path)


@pytest.mark.requirement("client:unreachable")
@BOTH
def test_a_daemon_that_does_not_answer_is_not_waited_for_for_ever(
    tmp_path: Path, call: Call
) -> None:
    silent = threading.Event()

    def reply(_: bytes) -> bytes:
        silent.wait(60)
        return b""

    with peer(tmp_path, reply) as found:
        with pytest.raises(DaemonUnreachable, match="did not answer within"):
            call(found.path, timeout_s=0.1)
        silent.set()


@pytest.mark.requirement("client:unreachable")
def test_a_call_cut_off_in_the_middle_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    asked, held = threading.Event(), threading.Event()

    def reply(request: bytes) -> bytes:
        if b"/slow" in request:
            asked.set()
            held.wait(60)
            return http({"answer": "late"})
        return http({"answer": "mine"})

    async def run(path: Path) -> Document:
        async with AsyncClient(path) as client:
            slow = asyncio.create_task(client.get("/slow"))
            assert await asyncio.to_thread(asked.wait, 60)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            held.set()
            return await client.get("/quick")

    with peer(tmp_path, reply) as found:
        assert asyncio.run(run(found.path)) == {"answer": "mine"}


OWN_WORDS: Final[Mapping[type, SubagentsError]] = {
    errors.Forbidden: errors.Forbidden("too deep", guardrail="depth", hint="raise it"),
    errors.RateLimited: errors.RateLimited("10 a minute", retry_after_s=3),
    errors.Elsewhere: errors.Elsewhere(7, url="https://b:1", node="b"),
}
"""Of the errors that make their message themselves."""


def every_error() -> list[SubagentsError]:
    """One of each code that a daemon answers with."""
    kinds = {each for each in vars(errors).values() if isinstance(each, type)}
    return [
        OWN_WORDS.get(each) or each("no such run", hint="look", details={"field": "x"})
        for each in sorted(kinds, key=lambda kind: kind.__name__)
        if issubclass(each, SubagentsError) and each is not errors.IllegalTransition
    ]


@pytest.mark.requirement("client:errors")
@pytest.mark.parametrize("sent", every_error(), ids=lambda sent: type(sent).__name__)
def test_each_error_comes_back_as_the_class_it_left_as(sent: SubagentsError) -> None:
    found = error_from(sent.to_wire())
    assert type(found) is type(sent)
    assert found.to_wire() == sent.to_wire()


@pytest.mark.requirement("client:errors")
@pytest.mark.parametrize("node", ["n1", None])
def test_what_another_node_decides_comes_back_as_that(node: str | None) -> None:
    sent = errors.Elsewhere(7, url=None if node is None else "https://n1:1", node=node)
    found = error_from(sent.to_wire())
    assert isinstance(found, errors.Elsewhere)
    assert (found.partition, found.to_wire()) == (7, sent.to_wire())


@pytest.mark.requirement("client:errors")
@BOTH
def test_a_refusal_is_raised_with_its_guardrail(tmp_path: Path, call: Call) -> None:
    sent = Forbidden("too deep", guardrail="depth", hint="raise it")
    with (
        peer(tmp_path, lambda _: http(sent.to_wire(), status=403)) as found,
        pytest.raises(Forbidden, match="too deep") as caught,
    ):
        call(found.path)
    assert caught.value.guardrail == "depth"
    assert caught.value.hint == "raise it"


@pytest.mark.requirement("client:errors")
def test_an_error_of_a_newer_daemon_keeps_its_code_in_the_details() -> None:
    found = error_from({"code": "quota", "message": "used up", "details": {"a": 1}})
    assert type(found) is SubagentsError
    assert found.message == "used up"
    assert found.details == {"a": 1, "code": "quota"}
    assert error_from({}).message == "the daemon gave no reason"
    promised = errors.IllegalTransition("r-1", "running", "X")
    assert error_from(promised.to_wire()).details["code"] == "illegal_transition"


@pytest.mark.requirement("client:errors")
def test_the_client_goes_on_after_a_refusal(tmp_path: Path) -> None:
    replies = iter([http(NotFound("no").to_wire(), status=404), http({"ok": 1})])
    with peer(tmp_path, lambda _: next(replies)) as found, Client(found.path) as client:
        with pytest.raises(NotFound):
            client.get("/x")
        assert client.get("/x") == {"ok": 1}
        assert found.connections == 1


@pytest.mark.requirement("client:errors")
def test_what_cannot_be_sent_is_refused_before_anything_is() -> None:
    with pytest.raises(UsageError, match="session must be printable ASCII"):
        Client("/nowhere", session="agent:x\r\nx-evil: 1")
    with pytest.raises(UsageError, match="reader must be printable ASCII"):
        AsyncClient("/nowhere", reader="ü")
    with pytest.raises(UsageError, match="valid UTF-8"):
        Client("/nowhere").post("/x", {"task": "\ud800"})


@pytest.mark.requirement("client:speaks")
@BOTH
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_sent_as_null(
    tmp_path: Path, call: Call, number: float
) -> None:
    with peer(tmp_path, lambda _: http({})) as found:
        call(found.path, "/v1/runs", {"budget": {"maxCostUsd": number}})
    assert found.requests[0].endswith(b'{"budget":{"maxCostUsd":null}}')


@pytest.mark.requirement("client:hand-over")
def test_what_was_handed_over_is_acknowledged_though_the_next_call_was_cancelled(
    tmp_path: Path,
) -> None:
    came, go_on = threading.Event(), threading.Event()

    def reply(_: bytes) -> bytes:
        if not came.is_set():
            came.set()
            go_on.wait(10)
        return http({})

    async def run(path: Path) -> None:
        async with AsyncClient(path) as client:
            client.hand_over(["m-1"])
            call = asyncio.create_task(client.get("/x"))
            await asyncio.to_thread(came.wait, 10)
            call.cancel()
            await asyncio.wait({call})
            go_on.set()
            await client.get("/x")

    with peer(tmp_path, reply) as found:
        asyncio.run(run(found.path))
    assert [each.split()[1] for each in found.requests] == [b"/v1/inbox/ack"] * 2 + [b"/x"]
