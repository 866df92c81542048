"""Codes and logins: what holds, for whom, and what of it is still so after a kill."""

import asyncio
import stat
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from subagents.api.calls.login import Login, Role
from subagents.config.paths import Paths
from subagents.engine.kernel.threads import DaemonThreads
from subagents.errors import NotFound, Unauthorized, Unavailable
from subagents.extensions.web.logins import (
    CODE_MS,
    CODES_MAX,
    FILE_NAME,
    IDLE_MS,
    KEPT_EVERY_MS,
    LOGINS_MAX,
    Logins,
    csrf_of,
)

PORT = 7333


class Place:
    """The home of some logins; the test turns their clock."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths.resolve({"SUBAGENTS_HOME": str(root)})
        self.paths.ensure()
        self.file = self.paths.state_dir / FILE_NAME
        self.now_ms = 1_800_000_000_000
        self.threads = DaemonThreads("test")

    async def logins(self) -> Logins:
        """As the next daemon knows them."""
        found = Logins(self.paths, self.threads, lambda: self.now_ms)
        await found.load()
        return found

    async def logged_in(self, logins: Logins, role: Role = Role.OPERATOR) -> tuple[str, Login]:
        return await logins.take(logins.code(role), port=PORT, browser="Chromium")


def play(root: Path, scenario: Callable[[Place], Coroutine[None, None, None]]) -> None:
    place = Place(root)
    try:
        asyncio.run(scenario(place))
    finally:
        place.threads.close()


# -- codes ---------------------------------------------------------------------------------------


@pytest.mark.requirement("login:code")
def test_a_code_is_taken_once(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        logins = await place.logins()
        code = logins.code(Role.VIEWER)
        _, login = await logins.take(code, port=PORT, browser="x" * 999)
        assert (login.role, len(login.browser)) == (Role.VIEWER, 200)
        for wrong in (code, "", "x"):
            with pytest.raises(Unauthorized, match="used already, or is too old"):
                await logins.take(wrong, port=PORT, browser="")
        assert len(logins.all()) == 1

    play(tmp_path, scenario)


@pytest.mark.requirement("login:code")
@pytest.mark.parametrize(
    ("later_ms", "holds"), [(CODE_MS - 1, True), (CODE_MS, False), (-1, False)]
)
def test_a_code_holds_for_a_minute_and_no_longer(
    tmp_path: Path, later_ms: int, *, holds: bool
) -> None:
    async def scenario(place: Place) -> None:
        logins = await place.logins()
        code = logins.code(Role.OPERATOR)
        place.now_ms += later_ms
        if holds:
            await logins.take(code, port=PORT, browser="")
        else:
            with pytest.raises(Unauthorized):
                await logins.take(code, port=PORT, browser="")
            place.now_ms -= later_ms
            with pytest.raises(Unauthorized):
                await logins.take(code, port=PORT, browser="")

    play(tmp_path, scenario)


@pytest.mark.requirement("login:code")
def test_of_too_many_codes_the_oldest_holds_no_more(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        logins = await place.logins()
        codes = [logins.code(Role.OPERATOR) for _ in range(CODES_MAX + 1)]
        with pytest.raises(Unauthorized):
            await logins.take(codes[0], port=PORT, browser="")
        for code in codes[1:]:
            await logins.take(code, port=PORT, browser="")

    play(tmp_path, scenario)


# -- logins --------------------------------------------------------------------------------------


@pytest.mark.requirement("login:hashed")
def test_neither_code_nor_cookie_is_on_the_disk_and_the_file_is_private(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        logins = await place.logins()
        code = logins.code(Role.OPERATOR)
        token, login = await logins.take(code, port=PORT, browser="")
        kept = place.file.read_text()
        assert login.id in kept
        for secret in (code, token, csrf_of(token)):
            assert secret not in kept
        assert stat.S_IMODE(place.file.stat().st_mode) == 0o600

    play(tmp_path, scenario)


@pytest.mark.requirement("login:survives-kill")
def test_the_next_daemon_knows_who_was_logged_in_and_who_was_logged_out(tmp_path: Path) -> None:
    """Nothing is closed or flushed in between: the first one was killed."""

    async def scenario(place: Place) -> None:
        killed = await place.logins()
        one, first = await place.logged_in(killed)
        two, second = await place.logged_in(killed, Role.VIEWER)
        await killed.revoke(first.id)
        after = await place.logins()
        assert after.use(two).id == second.id
        assert after.port == PORT
        for each in (killed, after):
            with pytest.raises(Unauthorized, match="is over, or was revoked"):
                each.use(one)
        with pytest.raises(NotFound, match="no browser is logged in as"):
            await after.revoke(first.id)

    play(tmp_path, scenario)


@pytest.mark.requirement("login:idle")
def test_a_login_is_over_when_it_was_not_used_for_twelve_hours(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        logins = await place.logins()
        token, login = await place.logged_in(logins)
        for _ in range(3):
            place.now_ms += IDLE_MS - 1
            assert logins.use(token).id == login.id
        await logins.flush()
        place.now_ms += IDLE_MS
        for each in (logins, await place.logins()):
            assert each.all() == []
            assert each.port is None
            with pytest.raises(Unauthorized):
                each.use(token)

    play(tmp_path, scenario)


@pytest.mark.requirement("login:writes")
def test_a_thousand_calls_write_when_they_were_made_once_in_five_minutes(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        logins = await place.logins()
        token, _ = await place.logged_in(logins)
        writes = 0

        def counted(work: Callable[[], None]) -> "asyncio.Future[None]":
            nonlocal writes
            writes += 1
            return place.threads(work)

        logins._off_loop = counted  # type: ignore[assignment]  # of the one kind of work there is
        for _ in range(1000):
            place.now_ms += 900  # a quarter of an hour in all
            logins.use(token)
            if logins._late is not None:
                await logins._late
        assert 1 <= writes <= 1000 * 900 // KEPT_EVERY_MS
        await logins.flush()
        assert (await place.logins()).all()[0].used_ms == place.now_ms

    play(tmp_path, scenario)


@pytest.mark.requirement("login:bounded")
def test_of_too_many_logins_the_first_one_is_over(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        logins = await place.logins()
        tokens = [(await place.logged_in(logins))[0] for _ in range(LOGINS_MAX + 1)]
        for each in (logins, await place.logins()):
            assert len(each.all()) == LOGINS_MAX
            with pytest.raises(Unauthorized):
                each.use(tokens[0])
            each.use(tokens[1])

    play(tmp_path, scenario)


@pytest.mark.requirement("login:revoked")
def test_whoever_waits_for_the_end_of_a_login_hears_of_it(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        logins = await place.logins()
        _, login = await place.logged_in(logins)
        waiting = asyncio.create_task(logins.until_over(login.id))
        await asyncio.sleep(0)
        assert not waiting.done()
        await logins.revoke(login.id)
        await waiting
        await logins.until_over(login.id)  # and who comes later, too

    play(tmp_path, scenario)


# -- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.requirement("login:damaged")
@pytest.mark.parametrize("found", ["", "{", '{"w-1": {"id": 5}}', "[" * 9999])
def test_a_damaged_file_logs_everybody_out_and_stops_nothing(tmp_path: Path, found: str) -> None:
    async def scenario(place: Place) -> None:
        place.file.write_text(found)
        logins = await place.logins()
        assert logins.all() == []
        token, login = await place.logged_in(logins)
        assert (await place.logins()).use(token).id == login.id

    play(tmp_path, scenario)


@pytest.mark.requirement("login:full-disk")
def test_a_login_that_cannot_be_kept_is_refused_and_one_that_is_revoked_is_over_all_the_same(
    tmp_path: Path,
) -> None:
    async def scenario(place: Place) -> None:
        logins = await place.logins()
        token, login = await place.logged_in(logins)
        place.file.rename(place.file.with_suffix(".kept"))
        place.file.mkdir()  # no file can take its place
        with pytest.raises(Unavailable, match="the login cannot be kept"):
            await place.logged_in(logins)
        assert [each.id for each in logins.all()] == [login.id]
        with pytest.raises(Unavailable, match="is over, but the next daemon would know it again"):
            await logins.revoke(login.id)
        with pytest.raises(Unauthorized):
            logins.use(token)
        place.file.rmdir()
        await logins.flush()
        assert (await place.logins()).all() == []

    play(tmp_path, scenario)
