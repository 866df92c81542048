"""Growth of files is told soon, and quiet files cost nothing."""

import asyncio
import os
from pathlib import Path

import pytest

from subagents.runtimes.process.poller import POLL_MAX_S, Poller, _Followed


@pytest.mark.requirement("runtimes:idle-costs-nothing")
def test_400_quiet_files_wake_the_loop_at_most_four_times_a_second(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"quiet")
    files = [_Followed(str(path), asyncio.Event(), lambda: None) for _ in range(400)]
    for index, followed in enumerate(files):
        followed.due = index * 0.037  # they started at different times
    looks: list[float] = []
    now = 0.0
    while now < 50:
        now = min(each.due for each in files)
        looks.append(now)
        for each in files:
            if each.due <= now:
                each.look(now)
    steady = [at for at in looks if 40 <= at < 50]

    assert len(steady) <= 10 * 4
    assert all(each.due - now <= POLL_MAX_S * 1.5 for each in files)


@pytest.mark.requirement("runtimes:output-is-followed")
async def test_growth_is_told_and_a_poller_without_files_keeps_no_timer(tmp_path: Path) -> None:
    path = tmp_path / "out"
    poller, news = Poller(), asyncio.Event()
    with poller.follow(str(path), news):
        path.write_bytes(b"x")
        await asyncio.wait_for(news.wait(), 10)
        news.clear()
        with path.open("ab") as file:
            os.write(file.fileno(), b"y")
        await asyncio.wait_for(news.wait(), 10)
    assert poller._timer is None
