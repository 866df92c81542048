"""What ``doctor`` says of who is told of runs."""

import os
from collections.abc import Iterator

from subagents.cli.doctor_check import OK, WARN, Check
from subagents.client.client import Document
from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.errors import ConfigError
from subagents.extensions.notifications.notification_settings import NotificationChannel
from subagents.extensions.notifications.who_is_told import channel_of


def checks(home: Paths, found: Document | None) -> Iterator[Check]:
    """Whether a person would hear of runs, as far as can be seen without sending anything."""
    try:
        settings = load(None, os.environ, paths=home).settings
    except ConfigError:
        return
    listed = (found or {}).get("notifications")
    rows = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    known = {str(each.get("to")): each for each in rows}
    for name, configured in sorted(settings.named(NotificationChannel).items()):
        channel = channel_of(configured, settings, os.environ)
        to = f"{name} ({channel.where})"
        state = known.get(to)
        # The daemon sends it: another Python may have what this one lacks.
        problem = channel.problem() if state is None else state.get("problem")
        if problem:
            fix = f"mend that, then try it: subagents notifications test {name}"
            yield Check("notifications", WARN, f"{to}: you are told nothing: {problem}", fix)
        elif found is not None and state is None:
            text = f"{to}: the daemon does not know it: it was started before this was configured"
            yield Check("notifications", WARN, text, "subagents down --yes && subagents up")
        else:
            sent = "" if state is None else f": {state.get('sent')} sent since the daemon started"
            yield Check("notifications", OK, f"{to}{sent}")
