"""What is looked at stays where it is until it is kept."""

import os
import socket
from pathlib import Path

import pytest
from tests.torture.handing import Broken, document_in, drain, is_document, peeked, splice

ANSWER = b'HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{"a": 1}'


@pytest.mark.requirement("torture:verdict")
def test_what_was_peeked_at_is_unread_until_it_is_drained() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(ANSWER[:30])
        theirs.sendall(ANSWER[30:])
        data = peeked(ours, is_document)
        assert document_in(data) == {"a": 1}
        assert peeked(ours, is_document) == data
        drain(ours, len(data))
        theirs.close()
        with pytest.raises(Broken):
            peeked(ours, is_document)


@pytest.mark.requirement("torture:verdict")
def test_an_answer_of_another_status_hands_nothing_over() -> None:
    with pytest.raises(Broken, match="503"):
        document_in(ANSWER.replace(b"200 OK", b"503 no"))


@pytest.mark.requirement("torture:verdict")
def test_a_pipe_is_moved_into_a_file_to_its_end(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"first ")
    os.write(theirs, b"second")
    os.close(theirs)
    splice(ours, tmp_path / "taken")
    os.close(ours)
    assert (tmp_path / "taken").read_bytes() == b"first second"
