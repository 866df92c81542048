"""Where notifications go: the desktop, or any service that Apprise knows.

Apprise (``subagents[notify]``) speaks to ntfy, Slack, Matrix, mail and a hundred more; one address
says which, where and with what password. The desktop needs nothing that is not there.
"""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from subagents import process_group
from subagents.domain.redaction.redact import redact
from subagents.domain.run.secret_reference import PREFIX
from subagents.errors import SubagentsError
from subagents.extensions.notifications.notifier import Channel, Notification
from subagents.followers.journal_export import ReceiverUnavailable
from subagents.installation import extra_command
from subagents.text import one_line

if TYPE_CHECKING:
    import apprise

DESKTOP: Final = "desktop"
SEND_S_MAX: Final = 30.0
ERROR_CHARS_MAX: Final = 300
_OSASCRIPT: Final = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)
"""The texts are arguments: nothing of them is read as a script."""


def channel(url: str, environ: Mapping[str, str], secret: Callable[[str], str]) -> "Channel":
    """The channel behind an address of the configuration; nothing is looked at or sent yet.

    Args:
        url: ``desktop``, an address of Apprise's, or ``secret:NAME``.
        environ: What the desktop's program gets.
        secret: The value behind a name; raises SubagentsError.
    """
    return Desktop(environ) if url == DESKTOP else AppriseService(url, secret)


class Desktop:
    """``notify-send`` on Linux, ``osascript`` on macOS: whichever is on PATH."""

    where = DESKTOP

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def problem(self) -> str | None:
        """See ``Channel``."""
        try:
            self._argv(Notification("", ""))
        except ReceiverUnavailable as error:
            return str(error)
        return None

    def send(self, notification: Notification) -> None:
        """See ``Channel``."""
        argv = self._argv(notification)
        try:
            done = process_group.run(argv, timeout_s=SEND_S_MAX, env=self._environ)
        except subprocess.TimeoutExpired as error:
            text = f"{argv[0]} did not end within {SEND_S_MAX:.0f} s"
            raise ReceiverUnavailable(text) from error
        except OSError as error:
            raise ReceiverUnavailable(f"{argv[0]}: {error.strerror}") from error
        if done.returncode != 0:
            said = one_line(redact(done.stderr.decode("utf-8", "replace")), ERROR_CHARS_MAX)
            raise ReceiverUnavailable(
                f"{argv[0]} ended with exit code {done.returncode}{said and f': {said}'}"
            )

    def _argv(self, notification: Notification) -> list[str]:
        path, texts = self._environ.get("PATH"), (notification.title, notification.body)
        if found := shutil.which("notify-send", path=path):
            return [found, "--app-name=subagents", "--", *texts]
        if found := shutil.which("osascript", path=path):
            return [found, *(word for line in _OSASCRIPT for word in ("-e", line)), *texts]
        raise ReceiverUnavailable(
            "neither notify-send nor osascript is on PATH; install libnotify (libnotify-bin)"
        )


class AppriseService:
    """One address of Apprise's. It is read again each time, and so is a secret."""

    def __init__(self, url: str, secret: Callable[[str], str]) -> None:
        self._url = url
        self._secret = secret

    @property
    def where(self) -> str:
        """The service's name; the rest of an address may be a password."""
        is_secret = self._url.startswith(PREFIX)
        return self._url if is_secret else self._url.partition("://")[0]

    def problem(self) -> str | None:
        """See ``Channel``."""
        try:
            self._service()
        except ReceiverUnavailable as error:
            return str(error)
        return None

    def send(self, notification: Notification) -> None:
        """See ``Channel``."""
        service, url = self._service()
        import apprise  # noqa: PLC0415 - an extra

        said: list[str] = []
        is_sent = service.notify(
            title=notification.title,
            body=notification.body,
            notify_type=apprise.NotifyType(notification.kind),
            body_format=apprise.NotifyFormat.TEXT,
            timeout=SEND_S_MAX,
            log_callback=lambda entry, _service: said.append(entry.message),
        )
        if not is_sent:
            text = one_line(redact(" ".join(said)).replace(url, self.where), ERROR_CHARS_MAX)
            raise ReceiverUnavailable(text or f"{self.where} did not take it")

    def _service(self) -> "tuple[apprise.Apprise, str]":
        """What sends, and the whole address."""
        try:
            import apprise  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ReceiverUnavailable(
                f"{self.where} needs Apprise: {extra_command('notify')}"
            ) from error
        url = self._url
        if url.startswith(PREFIX):
            try:
                url = self._secret(url.removeprefix(PREFIX))
            except SubagentsError as error:
                raise ReceiverUnavailable(error.message) from error
        service = apprise.Apprise()
        if not service.add(url):
            raise ReceiverUnavailable(
                f"{self.where} is no address that Apprise understands; see "
                "https://appriseit.com/services/"
            )
        return service, url
