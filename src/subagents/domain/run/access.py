"""What a worker may do to the machine: one of three levels, where it may write, and the network.

The levels are ordered: whatever one of them allows, the next allows too.
"""

from enum import StrEnum

from subagents.domain.run.values import Value


class AccessLevel(StrEnum):
    """``read`` < ``write`` < ``full``."""

    READ = "read"
    """Reads files; changes none."""
    WRITE = "write"
    """Reads files, and changes those below its working directory."""
    FULL = "full"
    """Whatever the user may: nothing keeps it from anything."""

    @property
    def rank(self) -> int:
        """Its place in the order, from 0."""
        return _ORDER.index(self)


_ORDER = (AccessLevel.READ, AccessLevel.WRITE, AccessLevel.FULL)


class Keeper(StrEnum):
    """What keeps a worker to less than everything."""

    PROGRAM = "program"
    """A sandbox of the agent's own program."""
    BUBBLEWRAP = "bubblewrap"
    """A sandbox around the program: it sees the file system read-only, but for a few places."""
    TOOLS = "tools"
    """It has no tool that could do more: no shell, and edits only where it works."""


_KEPT = {
    Keeper.PROGRAM: "its program's sandbox",
    Keeper.BUBBLEWRAP: "bubblewrap",
    Keeper.TOOLS: "its tools (it has no shell)",
}


class Access(Value, frozen=True):
    """What one run's worker may do; part of its receipt."""

    level: AccessLevel
    network: bool = True
    """Whether its commands and tools may reach the network; its program reaches its model."""
    below: str | None = None
    """The directory below which it may write; None with ``read`` and ``full``."""
    sees: str | None = None
    """The only directory of its user's that is there for it (``isolation: "sandbox"``), without
    symbolic links; None = it sees all that its user does."""
    kept_by: Keeper | None = None
    """None = nothing needs to: ``full`` and the network."""
    narrowed: str | None = None
    """Why it is less than its agent may have."""
    is_pinned: bool = False
    """Somebody above it may write in one place only, perhaps where it works: its working directory
    had no symbolic link in it when this was granted, and must have none at the start."""

    @property
    def is_bound(self) -> bool:
        """Whether something must keep the worker to it."""
        return self.level is not AccessLevel.FULL or not self.network

    @property
    def text(self) -> str:
        """In one line: ``may read, and write below /w; network; kept by bubblewrap``."""
        match self.level:
            case AccessLevel.READ if self.sees is not None:
                may = f"may read below {self.sees} alone, and write nothing (sandbox)"
            case AccessLevel.WRITE if self.sees is not None:
                may = f"may read and write below {self.sees} alone (sandbox)"
            case AccessLevel.READ:
                may = "may read, and write nothing"
            case AccessLevel.WRITE:
                may = f"may read, and write below {self.below}"
            case AccessLevel.FULL:
                may = "may do everything its user may"
        network = "network" if self.network else "no network"
        kept = f"; kept by {_KEPT[self.kept_by]}" if self.kept_by is not None else ""
        return f"{may}; {network}{kept}"


class Ceiling(Value, frozen=True):
    """The most that the runs of one caller may do, because the caller may do no more itself."""

    level: AccessLevel
    source: str
    """Whose limits these are, for people and agents: ``Codex's sandbox "read-only"``."""
    network: bool = True
    below: str | None = None
    """Where it may write, when it may only write there; None = wherever the level allows."""
    sees: str | None = None
    """The one directory that whatever it spawns sees, as ``Access.sees``; None = all of them."""
    servers: tuple[str, ...] | None = None
    """The MCP servers that these runs may have besides ours; None = any."""
