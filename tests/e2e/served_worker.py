"""A worker of a real program with the MCP servers of its agent, beside those of its user."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.e2e import small_mcp_server
from tests.e2e.live_home import DEFAULTS, live_home
from tests.e2e.program_setups import ProgramSetup
from tests.e2e.scripted_model import Conversation, Say, ScriptedModel, Use

FOREIGN: Final = {"command": sys.executable, "args": [small_mcp_server.__file__]}
"""A server of the user's own."""
SECRET: Final = "weighing-key-7f3a9c51e0"
CONFIG: Final = """
mcp_servers = ["scales", "far"]

[agents.{name}-alone]
{alone}
mcp_servers = []

[mcp_servers.scales]
command = {python}
args = [{script}]
env = {{ WEIGHING_KEY = "secret:weighing" }}

[mcp_servers.far]
url = "{far}"
headers = {{ Authorization = "Bearer secret:weighing" }}

[secrets.weighing]
command = ["cat", {secret}]
"""
Document = dict[str, Any]


class Served:
    """What came of one run with servers, and of one with none but ours."""

    def __init__(
        self,
        setup: ProgramSetup,
        root: Path,
        plant: Callable[[Path, Path], None],
        *,
        calls: Sequence[Use],
    ) -> None:
        """
        Args:
            setup: The program.
            root: An empty directory.
            plant: Puts servers of the user's own where the program looks for them: it is given the
                directory of the setup, and the user's home.
            calls: Of the tool of ``scales``, and that of ``far``.
        """
        with ScriptedModel({}) as model, small_mcp_server.serving(f"Bearer {SECRET}") as url:
            own = root / "setup"
            own.mkdir()
            (root / "weighing.key").write_text(SECRET)
            setup.prepare(model.url, own)
            model.scripts["weighs"] = [
                tuple(calls),
                Say("done"),
            ]
            model.scripts["looks"] = [Say("seen")]
            table = setup.config(model.url, own)
            config = (
                DEFAULTS
                + table
                + CONFIG.format(
                    name=setup.name,
                    alone=table.partition("\n")[2],
                    python=json.dumps(sys.executable),
                    script=json.dumps(small_mcp_server.__file__),
                    far=url,
                    secret=json.dumps(str(root / "weighing.key")),
                )
            )
            with live_home(root / "live", config=config) as home:
                plant(own, home.root)
                self.run_id = home.spawn("script:weighs", agent=setup.name)
                ended = home.finish(self.run_id, timeout_s=60)[0]
                assert ended["outcome"]["status"] == "ok", ended["outcome"]
                self.status: Document = home.get(f"/v1/runs/{self.run_id}/status")
                alone = home.spawn("script:looks", agent=f"{setup.name}-alone")
                home.finish(alone, timeout_s=60)
                self.files = [
                    str(each.relative_to(home.root))
                    for each in home.root.rglob("*")
                    if each.is_file() and SECRET.encode() in _bytes(each)
                ]
            asked = [(each.place() or ("",))[0] for each in model.conversations]
            pairs = list(zip(asked, model.conversations, strict=True))
        self.shown = "\n".join(_tools(each) for name, each in pairs if name == "weighs")
        self.alone = "\n".join(_tools(each) for name, each in pairs if name == "looks")
        self.told = "\n".join(
            text for name, each in pairs if name == "weighs" for text in each.results
        )


def _tools(asked: Conversation) -> str:
    """The names of its tools, also of those that the model is only told of."""
    return "\n".join([*asked.tools, asked.seen])


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
