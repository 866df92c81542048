"""What the bridge says by itself while a client connects: it needs no daemon, and no time.

Clients ask for the tools once and wait a few seconds at most; one that was not answered works
without them, or in an older protocol, for the rest of its session. So these answers are recorded
from the daemon into ``handshake_answers.jsonl`` (``make docs``), and a test holds them to its.

Nothing is imported here that takes time, not even json or typing: on a busy machine each
millisecond of a start becomes ten.
"""

import os
import sys

# Type checkers take it for theirs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

try:
    # What json parses and writes with; json itself imports re, which takes as long as Python.
    from _json import encode_basestring_ascii as _quoted
    from _json import make_scanner as _make_scanner
except ImportError:  # a Python other than CPython
    from json import JSONDecoder
    from json.encoder import encode_basestring_ascii as _quoted

    def _make_scanner(_: object) -> object:  # type: ignore[no-redef]
        return JSONDecoder().raw_decode


RECORDED = "handshake_answers.jsonl"
REMEMBERED = "mcp_instructions.json"
"""The file in the cache directory that keeps the daemon's instructions for the next start."""
VERSION_SLOT = b'"@protocolVersion"'
INSTRUCTIONS_SLOT = b'"@instructions"'
VERSION_META = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_META = "io.modelcontextprotocol/clientCapabilities"
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
"""Set by Claude Code for the servers it starts; others start them in the project."""
CONFIG_FILE_NAME = "subagents.toml"
OPTIONS = ("--session", "--ceiling")
"""Each takes a value, and none changes which tools there are."""


class _Options:
    """How the parser reads JSON: as ``json.loads`` does."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


_scan = _make_scanner(_Options())  # type: ignore[arg-type,unused-ignore]


def parsed(text: bytes) -> object:
    """One JSON document; None = it is none, or not a plain one."""
    try:
        document = text.decode().strip()
        found, end = _scan(document, 0)
    except (ValueError, StopIteration, RecursionError, SystemError):
        # The last one is how it says "invalid" while json is not imported.
        return None
    return found if end == len(document) else None


def quoted(value: str | int) -> bytes:
    """A text or a whole number as JSON."""
    return (_quoted(value) if isinstance(value, str) else repr(value)).encode()


class Handshake:
    """The answers of one connection, and the protocol version it agreed on."""

    def __init__(
        self,
        answers: "Mapping[str, bytes]",
        instructions: str | None = None,
        fleet: "Callable[[], str]" = str,
    ) -> None:
        """
        Args:
            answers: As ``recorded`` gives them.
            instructions: What the daemon would say here; None = how to delegate, and the fleet.
            fleet: Says to whom; not called before a client asks for the instructions.
        """
        self._answers = answers
        self._instructions = instructions
        self._fleet = fleet
        self._legacy: list[str] = parsed(answers["legacy"])  # type: ignore[assignment]
        self._modern: list[str] = parsed(answers["modern"])  # type: ignore[assignment]
        self.version: str | None = None
        """Agreed by ``initialize``; newer clients say theirs in every request."""
        self.lists_tools = True
        """Whether the running daemon offers what is recorded; else it is asked itself."""
        self.has_listed = False
        """Whether the client has the list of tools."""

    @property
    def modern(self) -> str:
        """The newest version of the protocol that is spoken."""
        return self._modern[-1]

    @property
    def tools(self) -> bytes:
        """The result of ``tools/list`` of the current era."""
        return self._answers["modern tools/list"]

    def answer(self, message: object) -> bytes | None:
        """The answer to a request; None = it is the daemon's to give."""
        if not isinstance(message, dict):
            return None
        id_, method, params = message.get("id"), message.get("method"), message.get("params")
        params = {} if params is None else params
        if not isinstance(id_, str | int) or isinstance(id_, bool):
            return None
        if not isinstance(params, dict) or not isinstance(method, str):
            return None
        result = self._result(method, params)
        if result is None:
            return None
        return b'{"jsonrpc":"2.0","id":' + quoted(id_) + b',"result":' + result + b"}"

    def _result(self, method: str, params: "dict[str, object]") -> bytes | None:
        if method == "tools/list" and (not self.lists_tools or params.get("cursor") is not None):
            return None
        self.has_listed = self.has_listed or method == "tools/list"
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        if method == "initialize":
            return self._initialized(params.get("protocolVersion"))
        if VERSION_META in meta:
            is_whole = isinstance(meta.get(CAPABILITIES_META), dict)
            is_known = meta[VERSION_META] in self._modern
            found = self._answers.get(f"modern {method}") if is_whole and is_known else None
        else:
            found = self._answers.get(f"legacy {method}") if self.version else None
        return None if found is None else self._filled(found)

    def _initialized(self, wanted: object) -> bytes | None:
        if not isinstance(wanted, str):
            return None
        self.version = wanted if wanted in self._legacy else self._legacy[-1]
        found = self._answers["legacy initialize"]
        return self._filled(found.replace(VERSION_SLOT, quoted(self.version), 1))

    def _filled(self, found: bytes) -> bytes:
        if INSTRUCTIONS_SLOT not in found:
            return found
        if self._instructions is None:
            self._instructions = f"{parsed(self._answers['instructions'])}\n{self._fleet()}"
        return found.replace(INSTRUCTIONS_SLOT, quoted(self._instructions), 1)


def recorded() -> "dict[str, bytes]":
    """The answers of this version's daemon by era and method, ``legacy`` and ``modern`` alone the
    versions of the protocol; as JSON, with slots for what differs.

    Raises:
        OSError: The file is not there.
    """
    with open(os.path.join(os.path.dirname(__file__), RECORDED), "rb") as file:  # noqa: PTH118, PTH120, PTH123
        lines = file.read().splitlines()
    # {"NAME":VALUE}: the value stays text, since it is sent as it is.
    return {line[2:at].decode(): line[at + 2 : -1] for line in lines if (at := line.index(b'":'))}


def own_handshake(arguments: "Sequence[str]", environ: "Mapping[str, str]") -> Handshake | None:
    """The handshake of a top-level session; None = the daemon has to be asked."""
    if any(each.partition("=")[0] not in OPTIONS for each in arguments if each[:1] == "-"):
        return None
    try:
        project = environ.get(PROJECT_VARIABLE) or os.getcwd()  # noqa: PTH109
        remembered = Remembered.at(environ)
        known = None if remembered is None else remembered.find(place_of(arguments, project))
        return Handshake(recorded(), known, lambda: _fleet(arguments, project, environ))
    except (OSError, ValueError, KeyError):
        # An installation that is broken, or being replaced: the daemon may answer nevertheless.
        return None


# -- instructions --------------------------------------------------------------------------------
#
# They name the agents that may be spawned, by the configuration; reading that takes longer than all
# else here. So the bridge remembers what the daemon said last, with the files that this depends on,
# and says the same again while none of them has changed; the first time it reads them itself.


def _fleet(arguments: "Sequence[str]", project: str, environ: "Mapping[str, str]") -> str:
    """The agents that a session there may spawn, as the daemon would name them."""
    from pathlib import Path  # noqa: PLC0415

    from subagents.config.agent_cards import fleet, unreadable  # noqa: PLC0415
    from subagents.config.layers import load  # noqa: PLC0415
    from subagents.config.paths import Paths  # noqa: PLC0415
    from subagents.domain.run.values import SessionKey, agent_of  # noqa: PLC0415
    from subagents.errors import SubagentsError  # noqa: PLC0415

    given = " ".join(arguments).replace("--session=", "--session ")
    session = given.partition("--session ")[2].partition(" ")[0]
    try:
        config = load(Path(project), environ, paths=Paths.resolve(environ)).for_agents()
    except SubagentsError as error:
        return unreadable(error)
    return fleet(config.settings, agent_of(SessionKey(session)))


def place_of(arguments: "Sequence[str]", project: str) -> str:
    """Under which name the instructions for a session there are remembered.

    Projects without a configuration of their own share one.
    """
    return " ".join([*arguments, *(project_files(project)[:1] or [""])])


def project_files(project: str) -> list[str]:
    """Every ``subagents.toml`` there or above, the nearest first; which counts the daemon knows."""
    folder = os.path.abspath(project)  # noqa: PTH100
    found = []
    while True:
        file = os.path.join(folder, CONFIG_FILE_NAME)  # noqa: PTH118
        if os.path.lexists(file):
            found.append(file)
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            return found
        folder = above


def cache_dir(environ: "Mapping[str, str]") -> str | None:
    """Where ``Paths.resolve`` has the cache; None = only that knows."""
    if home := environ.get("SUBAGENTS_HOME"):
        return os.path.join(os.path.abspath(os.path.expanduser(home)), "cache")  # noqa: PTH100, PTH111, PTH118
    if sys.platform != "linux":
        return None
    base = environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")  # noqa: PTH111
    return os.path.join(base, "subagents")  # noqa: PTH118


def stamp(file: str) -> "list[int] | None":
    """What changes with a file; None = it is not there."""
    try:
        found = os.stat(file)  # noqa: PTH116
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size, found.st_ino]


class Remembered:
    """The file with the instructions of earlier sessions."""

    def __init__(self, file: str) -> None:
        self.file = file

    @classmethod
    def at(cls, environ: "Mapping[str, str]") -> "Remembered | None":
        folder = cache_dir(environ)
        return None if folder is None else cls(os.path.join(folder, REMEMBERED))  # noqa: PTH118

    def entries(self) -> "dict[str, dict[str, object]]":
        """Place → ``text`` and ``files``, with the stamp of each; empty when there are none."""
        try:
            with open(self.file, "rb") as file:  # noqa: PTH123
                found = parsed(file.read())
        except OSError:
            return {}
        return found if isinstance(found, dict) else {}

    def find(self, place: str) -> str | None:
        """The instructions for that place, when nothing that they depend on changed since."""
        entry = self.entries().get(place)
        if not isinstance(entry, dict):
            return None
        text, files = entry.get("text"), entry.get("files")
        if not isinstance(text, str) or not isinstance(files, dict):
            return None
        return text if all(stamp(file) == seen for file, seen in files.items()) else None
