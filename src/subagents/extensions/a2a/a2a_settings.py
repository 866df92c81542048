"""`[a2a]` of `subagents.toml`."""

from typing import Annotated, ClassVar

from msgspec import Meta

from subagents.config.settings import Section, Url


class A2aSettings(Section, frozen=True):
    """`[a2a]`: agents for clients of the Agent2Agent protocol; the user's own file only."""

    TABLE: ClassVar = "a2a"

    agents: Annotated[
        tuple[str, ...],
        Meta(
            max_length=100,
            description="Each is offered at `/a2a/<id>`, and works in its `agents.<id>.cwd`; the "
            "first one's card is also at `/.well-known/agent-card.json`. Needs subagents[a2a]. "
            "Only from your own file.",
        ),
    ] = ()
    push_urls: Annotated[
        tuple[Url, ...],
        Meta(
            max_length=100,
            description="Where clients may have the states of their tasks pushed: addresses that "
            "begin with one of these. Empty = nothing is pushed. Only from your own file.",
        ),
    ] = ()
