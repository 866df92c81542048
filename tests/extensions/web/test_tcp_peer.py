"""Whose connection it is, by the kernel's own tables."""

import os
import socket
import sys
from pathlib import Path

import pytest

from subagents.extensions.web.tcp_peer import owner_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tables are those of Linux")


@pytest.mark.requirement("tcp:peer")
@pytest.mark.parametrize(
    ("family", "host"),
    [
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET6, "::1"),
        (socket.AF_INET6, "::ffff:127.0.0.1"),
    ],
)
def test_a_connection_of_ours_is_ours_and_one_that_is_not_there_nobodys(
    family: socket.AddressFamily, host: str
) -> None:
    served = "127.0.0.1" if host.endswith("127.0.0.1") else host
    with (
        socket.create_server(
            (served, 0), family=socket.AF_INET6 if ":" in served else socket.AF_INET
        ) as listener,
        socket.socket(family) as client,
    ):
        client.connect((host, listener.getsockname()[1]))
        accepted, theirs = listener.accept()
        with accepted:
            there, here = theirs[:2], accepted.getsockname()[:2]
            assert owner_of(there, here) == os.getuid()
            assert owner_of(here, there) == os.getuid(), "both ends are here"
            assert owner_of(there, (here[0], here[1] + 1)) is None
            assert owner_of(("127.0.0.2", there[1]), here) is None


@pytest.mark.requirement("tcp:peer")
def test_the_user_is_read_from_the_row_of_this_connection_alone(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    rows = [
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid",
        "   0: 0100007F:1CA5 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 1",
        "   1: 0100007F:1CA5 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000 0 2",
        "   2: 0100007F:9C40 0100007F:1CA5 01 00000000:00000000 00:00000000 00000000  1007 0 3",
    ]
    table.write_text("\n".join(rows) + "\n")
    client, server = ("127.0.0.1", 0x9C40), ("127.0.0.1", 0x1CA5)
    if sys.byteorder == "little":
        assert owner_of(client, server, (tmp_path / "none", table)) == 1007
    assert owner_of(client, server, (tmp_path / "none",)) is None
