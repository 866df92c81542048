"""The right of a node is renewed for a while in the place of its daemon, and no longer."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from subagents.domain.cluster.partitioning import KEPT_LEASES, TRIES
from subagents.extensions.cluster import node_deadline
from subagents.extensions.cluster.node_keeper import Kept, keep
from subagents.process_identity import boot_id

LEASE_S = 0.2


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    node_deadline.write(tmp_path, node_deadline.elapsed_ms())
    return Kept(str(tmp_path), "postgresql:///none", "identity", LEASE_S)


def answering(answers: Sequence[bool | OSError], asked: list[int]) -> Callable[[], bool]:
    """A database that answers so, and the last answer for ever."""

    def renew() -> bool:
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append(node_deadline.elapsed_ms())
        if isinstance(answer, OSError):
            raise answer
        return answer

    return renew


def until_ms(kept: Kept) -> int:
    deadline = node_deadline.read(Path(kept.state_dir))
    assert deadline is not None
    return deadline.until_ms


@pytest.mark.requirement("cluster:daemon-killed")
def test_it_is_renewed_for_two_lengths_and_the_workers_live_as_much_longer(kept: Kept) -> None:
    asked: list[int] = []

    keep(kept, answering([True], asked))

    margin_ms = round(node_deadline.margin_s(LEASE_S) * 1000)
    assert len(asked) == KEPT_LEASES * TRIES + 1
    assert asked[-1] - asked[0] >= KEPT_LEASES * LEASE_S * 1000
    assert asked[0] <= until_ms(kept) <= asked[-1] + LEASE_S * 1000 - margin_ms


@pytest.mark.requirement("cluster:daemon-killed")
def test_it_is_renewed_at_once_since_half_of_what_was_left_may_be_over(kept: Kept) -> None:
    asked: list[int] = []
    begun_ms, lease_s = node_deadline.elapsed_ms(), 240.0

    keep(replace(kept, lease_s=lease_s), answering([False], asked))

    assert asked[0] - begun_ms < lease_s / TRIES * 1000


@pytest.mark.requirement("cluster:daemon-killed")
def test_nothing_is_renewed_any_more_once_another_daemon_has_the_node(kept: Kept) -> None:
    asked: list[int] = []
    before = until_ms(kept)

    keep(kept, answering([False], asked))

    assert len(asked) == 1
    assert until_ms(kept) == before


@pytest.mark.requirement("cluster:daemon-killed")
def test_a_database_that_cannot_be_asked_is_asked_again(kept: Kept) -> None:
    asked: list[int] = []

    keep(kept, answering([OSError("away"), OSError("away"), True, False], asked))

    assert len(asked) == 4
    assert until_ms(kept) > asked[2]


@pytest.mark.requirement("cluster:daemon-killed")
def test_an_end_that_the_next_daemon_has_moved_on_further_stays(tmp_path: Path) -> None:
    far_ms = node_deadline.elapsed_ms() + 60_000
    node_deadline.write(tmp_path, far_ms)

    node_deadline.move_on(tmp_path, far_ms - 1)
    assert node_deadline.read(tmp_path) == node_deadline.Deadline(far_ms, boot_id(), os.getpid())


@pytest.mark.requirement("cluster:daemon-killed")
def test_where_the_workers_have_no_end_they_get_none(tmp_path: Path) -> None:
    node_deadline.move_on(tmp_path, node_deadline.elapsed_ms())

    assert node_deadline.read(tmp_path) is None
