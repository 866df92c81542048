"""Transcripts in the database of a cluster: one writer at a time, and few rows."""

import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresServer
from tests.extensions.cluster.shared.row_place import RowPlace
from tests.store.transcripts.transcript_lines import (
    MB,
    RUN,
    checkpoint,
    everything,
    fill,
    lines,
    numbers,
)

from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.shared.transcript_rows import SMALL_MAX


@pytest.mark.requirement("transcript:taken-over")
def test_who_resumed_last_writes_and_what_a_frozen_node_says_later_is_refused(
    row_place: RowPlace,
) -> None:
    frozen, owner = row_place.log(), row_place.log()
    fill(frozen, 10)
    assert owner.resume(RUN) == checkpoint(10)

    for _ in range(2):
        with pytest.raises(OSError, match="another node writes"):
            frozen.append(RUN, lines(11, 12), checkpoint(12), bytes_max=MB)
    owner.append(RUN, lines(11, 15), checkpoint(15), bytes_max=MB)

    assert everything(frozen).lines == tuple(lines(1, 15))
    assert frozen.resume(RUN) == checkpoint(15), "given back to it"
    fill(frozen, 20)
    with pytest.raises(OSError, match="another node writes"):
        owner.append(RUN, lines(16, 16), checkpoint(16), bytes_max=MB)
    assert everything(owner).lines == tuple(lines(1, 20))


@pytest.mark.requirement("transcript:taken-over")
def test_a_node_that_is_over_appends_nothing_and_resumes_nothing(row_place: RowPlace) -> None:
    log = row_place.log()
    fill(log, 3)
    row_place.place.execute("UPDATE node SET identity = 'a node', is_over = true")

    with pytest.raises(Fenced):
        log.append(RUN, lines(4, 4), checkpoint(4), bytes_max=MB)
    with pytest.raises(Fenced):
        log.resume(RUN)

    assert numbers(everything(log)) == [1, 2, 3]


@pytest.mark.requirement("transcript:few-rows")
def test_many_small_batches_become_few_rows_which_are_smaller_than_the_lines(
    row_place: RowPlace,
) -> None:
    log = row_place.log()
    fill(log, 10_000, batch=20, bytes_max=8 * MB)

    ((rows, size, stored),) = row_place.place.asked(
        "SELECT count(*), sum(size)::bigint, sum(length(data))::bigint FROM transcript_part"
    )
    assert int(str(rows)) <= SMALL_MAX + 4
    assert int(str(stored)) < int(str(size)) / 4
    assert everything(log).lines == tuple(lines(1, 10_000))


@pytest.mark.requirement("transcript:synced")
def test_what_was_synced_outlives_a_crash_of_the_server_and_the_rest_is_a_beginning_of_it(
    row_place: RowPlace, postgres: PostgresServer
) -> None:
    log = row_place.log()
    fill(log, 50)
    log.sync(RUN)
    fill(log, 100)

    postgres.kill()
    try:
        with pytest.raises(StoreUnavailable):
            log.append(RUN, lines(101, 101), checkpoint(101), bytes_max=MB)
    finally:
        postgres.start()

    again = row_place.log()
    state = again.resume(RUN)
    assert 50 <= state.seq <= 100
    assert everything(again).lines == tuple(lines(1, state.seq))
    fill(again, 120)
    assert everything(again).lines == tuple(lines(1, 120))
