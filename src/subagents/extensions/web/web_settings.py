"""`[web]` of `subagents.toml`."""

from typing import Annotated, ClassVar

from msgspec import Meta

from subagents.config.settings import Section


class WebSettings(Section, frozen=True):
    """`[web]`: read once, when the daemon starts; the user's own file and environment only."""

    TABLE: ClassVar = "web"

    links: Annotated[
        bool,
        Meta(
            description="Whether `subagents ui --link` makes links by which a teammate looks. Off: "
            "none is made, and those that were made open nothing. Only from your own file."
        ),
    ] = False
