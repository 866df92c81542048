"""Browsers that are logged in: the codes by which they do so, and what their cookies stand for.

A code is made for whoever may read the Unix socket, holds for a minute and is taken once; then the
browser has a cookie. Of either only the SHA-256 is kept: of codes in memory, of logins in a file of
the state directory, which a kill leaves as it was before or after. They are in no table of the
database: a backup that is restored must not bring back what was revoked meanwhile.

A link for somebody else is a login that no browser has yet: kept, listed and revoked as any other,
and over at its time. Its code, too, is taken once.

See docs/decisions/0071 and 0114.
"""

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from typing import Any, Final

import msgspec

from subagents.api.calls.login import Login, Role
from subagents.api.calls.services import Services
from subagents.config.paths import Paths
from subagents.config.state_file import read_entries, write_entries
from subagents.domain.run.values import replace
from subagents.errors import (
    ConfigError,
    Forbidden,
    NotFound,
    Unauthorized,
    Unavailable,
    UsageError,
)
from subagents.extensions.web.web_settings import WebSettings
from subagents.ports import OffLoop

log = logging.getLogger(__name__)

NAME: Final = "web"
"""The name of this extension, and so of its ``Logins`` in ``Services.parts``."""
FILE_NAME: Final = "logins.json"
CODE_MS: Final = 60_000
"""How long a code can be taken."""
CODES_MAX: Final = 16
"""Codes that nobody took yet; of more the oldest holds no more."""
IDLE_MS: Final = 12 * 3_600_000
"""A login that is not used for so long is over, unless a link began it."""
LINK_MS_MAX: Final = 7 * 24 * 3_600_000
"""The longest that a link and its login may hold."""
LOGINS_MAX: Final = 64
"""How many logins there may be; with one more, the oldest is over."""
KEPT_EVERY_MS: Final = 5 * 60_000
"""How far the file may be behind in when a login was used last."""
SECRET_BYTES: Final = 32
BROWSER_CHARS_MAX: Final = 200
_AGAIN: Final = "open the page again: subagents ui"
_FAR: Final = "from another machine links alone open the page: subagents ui --link"


class _Code(msgspec.Struct, frozen=True):
    role: Role
    made_ms: int


class Logins:
    """All logins of one home; for the event loop alone.

    Args:
        paths: The home.
        off_loop: Carries the writing.
        now_ms: The wall clock.
        has_links: Whether links may be made and opened.
    """

    def __init__(
        self,
        paths: Paths,
        off_loop: OffLoop,
        now_ms: Callable[[], int],
        *,
        has_links: bool = False,
    ) -> None:
        self._paths = paths
        self._file = paths.state_dir / FILE_NAME
        self._off_loop = off_loop
        self._now_ms = now_ms
        self.has_links = has_links
        self._codes: dict[str, _Code] = {}
        self._by_id: dict[str, Login] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self._kept_ms = 0
        self._is_behind = False
        self._keeping = asyncio.Lock()
        self._late: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Know again who was logged in; who cannot be read is not."""
        hint = "it is written anew with the next login"
        try:
            known = await self._off_loop(lambda: read_entries(self._file, Login, hint=hint))
        except ConfigError as error:
            log.warning("nobody is logged in any more: %s", error.message)
            return
        self._by_id = {key: each for key, each in known.items() if self._is_alive(each)}

    @property
    def port(self) -> int | None:
        """Where the newest login expects us; None = nobody is logged in."""
        alive = self.all()
        return alive[-1].port if alive else None

    def all(self) -> list[Login]:
        """Those that hold now, the oldest first."""
        return [each for each in self._by_id.values() if self._is_alive(each)]

    def code(self, role: Role) -> str:
        """A new code; whoever brings it within ``CODE_MS``, and first, is logged in as ``role``."""
        code = secrets.token_urlsafe(SECRET_BYTES)
        self._codes[_digest(code)] = _Code(role, self._now_ms())
        while len(self._codes) > CODES_MAX:
            del self._codes[next(iter(self._codes))]
        return code

    async def link(self, *, port: int, for_ms: int) -> tuple[str, Login]:
        """A code that one browser opens at any time until its end, as a viewer, and what it is.

        Args:
            port: Where it is opened.
            for_ms: How long it holds, opened or not; 1 to ``LINK_MS_MAX``.

        Raises:
            Forbidden: The user wants no links.
            UsageError: Such a time is not allowed.
            Unavailable: It cannot be kept; there is none.
        """
        if not self.has_links:
            raise Forbidden(
                "links are off",
                guardrail="role",
                hint="in your subagents.toml, and start the daemon again: [web] links = true",
            )
        if not 0 < for_ms <= LINK_MS_MAX:
            raise UsageError("validFor must be over 0, at most 7d", details={"field": "validFor"})
        code, now_ms = secrets.token_urlsafe(SECRET_BYTES), self._now_ms()
        link = _login(
            Role.VIEWER, code, port, now_ms, until_ms=now_ms + for_ms, is_opened=False, browser=""
        )
        await self._add(link)
        return code, link

    async def take(
        self, code: str, *, port: int, browser: str, is_far: bool = False
    ) -> tuple[str, Login]:
        """Log in the browser that brings a code.

        Args:
            code: As it was presented; it opens nothing afterwards, whatever comes of this.
            port: That of the connection.
            browser: What it says to be.
            is_far: Whether only the code of a link counts, as from another machine.

        Returns:
            The cookie's value, which no browser had before, and what it stands for: both are kept
            when this returns.

        Raises:
            Unauthorized: The code is unknown, too old, or was taken already.
            Unavailable: The login cannot be kept; nobody is logged in.
        """
        now_ms, token = self._now_ms(), secrets.token_urlsafe(SECRET_BYTES)
        link = self._known(code, is_opened=False)
        found = None if is_far or link is not None else self._codes.pop(_digest(code), None)
        if link is not None:
            login = replace(link, digest=_digest(token), port=port, used_ms=now_ms, is_opened=True)
        elif found is None or not 0 <= now_ms - found.made_ms < CODE_MS:
            hint = _FAR if is_far else _AGAIN
            raise Unauthorized("this code was used already, or is too old", hint=hint)
        else:
            login = _login(found.role, token, port, now_ms)
        login = replace(login, browser=browser[:BROWSER_CHARS_MAX])
        await self._add(login)
        return token, login

    def use(self, token: str, *, is_far: bool = False) -> Login:
        """Whom a cookie stands for; this counts as its use.

        Args:
            token: The cookie's value.
            is_far: Whether only the login of a link counts, as from another machine.

        Raises:
            Unauthorized: Nobody, or nobody any more.
        """
        now_ms = self._now_ms()
        found = self._known(token, is_opened=True)
        if found is None or (is_far and found.until_ms is None):
            hint = _FAR if is_far else _AGAIN
            raise Unauthorized("this login is over, or was revoked", hint=hint)
        used = replace(found, used_ms=max(now_ms, found.used_ms))
        self._by_id[found.id] = used
        self._is_behind = True
        if now_ms - self._kept_ms >= KEPT_EVERY_MS and self._late is None:
            self._late = asyncio.create_task(self._keep_late(), name="keep logins")
        return used

    async def revoke(self, login_id: str) -> Login:
        """End a login at once: its open streams end, too, and its cookie opens nothing more.

        Raises:
            NotFound: There is none of that id.
            Unavailable: It is over, but that cannot be kept now.
        """
        login = self._by_id.get(login_id)
        if login is None or not self._is_alive(login):
            raise NotFound(
                f"no browser is logged in as {login_id[:40]}", hint="see: subagents ui --sessions"
            )
        self._end(login_id)
        try:
            await self._keep()
        except ConfigError as error:
            raise Unavailable(
                f"{login_id} is over, but the next daemon would know it again: {error.message}",
                hint="make room; this daemon writes it again when it stops: subagents down",
            ) from error
        return login

    async def until_over(self, login_id: str) -> None:
        """Return when a login is over: revoked, unused for too long, or its link's time is up."""
        ended = self._ends.setdefault(login_id, asyncio.Event())
        while (login := self._by_id.get(login_id)) is not None and self._is_alive(login):
            left_s = (ends_ms(login) - self._now_ms()) / 1000
            try:
                await asyncio.wait_for(ended.wait(), left_s)
            except TimeoutError:
                continue

    async def flush(self) -> None:
        """Keep what is not kept yet; the daemon stops."""
        if self._late is not None:
            await asyncio.wait({self._late})
        if self._is_behind:
            await self._keep_late()

    def _known(self, secret: str, *, is_opened: bool) -> Login | None:
        """Whose cookie it is, or which link's code."""
        digest, found = _digest(secret), None
        for each in self.all():
            if hmac.compare_digest(each.digest, digest) and each.is_opened is is_opened:
                found = each
        return found

    async def _add(self, login: Login) -> None:
        """Keep a new one, or one that was opened; over, and ``Unavailable``, when that fails."""
        others = [each.id for each in self.all() if each.id != login.id]
        for oldest in others[: -LOGINS_MAX + 1]:
            self._end(oldest)
        self._by_id[login.id] = login
        try:
            await self._keep()
        except ConfigError as error:
            self._end(login.id)
            raise Unavailable(f"the login cannot be kept: {error.message}", hint=_AGAIN) from error

    def _end(self, login_id: str) -> None:
        del self._by_id[login_id]
        self._is_behind = True
        if ended := self._ends.pop(login_id, None):
            ended.set()

    async def _keep_late(self) -> None:
        try:
            await self._keep()
        except ConfigError as error:
            # Then a login may end earlier than it could; the next use tries again.
            log.warning("when logins were used cannot be kept: %s", error.message)
        finally:
            self._late = None

    async def _keep(self) -> None:
        async with self._keeping:
            self._by_id = {each.id: each for each in self.all()}
            entries, self._is_behind, self._kept_ms = dict(self._by_id), False, self._now_ms()
            try:
                await self._off_loop(
                    lambda: write_entries(self._paths, self._file, entries, entries_max=LOGINS_MAX)
                )
            except ConfigError:
                self._is_behind = True
                raise

    def _is_alive(self, login: Login) -> bool:
        is_allowed = self.has_links or login.until_ms is None
        return is_allowed and self._now_ms() < ends_ms(login)


def ends_ms(login: Login) -> int:
    """When it is over; of one that no link began, unless it is used before."""
    return login.used_ms + IDLE_MS if login.until_ms is None else login.until_ms


def csrf_of(token: str) -> str:
    """What a page must send along with a call that changes something.

    Only a page of our own origin can read it in an answer, and only a script can send it.
    """
    return hmac.new(token.encode(), b"csrf", hashlib.sha256).hexdigest()


def _login(role: Role, secret: str, port: int, now_ms: int, **others: Any) -> Login:
    return Login(
        id=f"w-{secrets.token_hex(4)}",
        digest=_digest(secret),
        role=role,
        port=port,
        created_ms=now_ms,
        used_ms=now_ms,
        **{"browser": "", **others},
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def logins_of(services: Services) -> Logins:
    """Of that daemon."""
    found = services.parts.get(NAME)
    if found is None:
        has_links = services.config_known().settings.table(WebSettings).links
        found = Logins(services.paths, services.off_loop, services.now_ms, has_links=has_links)
        services.parts[NAME] = found
    assert isinstance(found, Logins)  # noqa: S101  nobody else's name
    return found
