"""A real receiver for what is delivered by a program."""

import json
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.couriers.courier_places import ELSEWHERE, OUTSIDE, Willingness
from tests.live_processes import carrying

from subagents.config.settings import Agent, AgentCourier, Settings
from subagents.domain.run.run import Run
from subagents.domain.run.values import SessionKey
from subagents.extensions.notifications.command_courier import DELIVERY_VARIABLE, CommandCourier
from subagents.extensions.testing.conformance import Received

MARK: Final = "COURIER_PLACE"

PROGRAM: Final = f"""#!{sys.executable} -SE
import json, os, subprocess, sys, time
place = os.path.dirname(os.path.abspath(__file__))
there = lambda name: os.path.exists(os.path.join(place, name))
if there("refuse"):
    sys.exit("\\u2603 go away")
if there("hang"):
    child = subprocess.Popen(["sleep", "600"])
    open(os.path.join(place, "begun"), "w").close()
    child.wait()
text = sys.stdin.buffer.read().decode()
told = {{"id": os.environ["{DELIVERY_VARIABLE}"], "text": text, "argv": sys.argv[1:]}}
line = json.dumps(told) + "\\n"
with open(os.path.join(place, "received"), "a") as file:
    file.write(line)
"""


class CommandPlace(Willingness):
    """A program that notes what it was told; told twice, it notes it twice."""

    target = OUTSIDE
    requester: Run | None = None
    stranger: tuple[SessionKey, Run | None] = (ELSEWHERE, None)
    dedupes = False

    def __init__(self, directory: Path, *words: str) -> None:
        super().__init__(directory)
        self.program = directory / "receiver"
        self.program.write_text(PROGRAM, "utf-8")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self.command = (str(self.program), *words)

    async def courier(self) -> CommandCourier:
        agents = {
            "main": Agent(courier=AgentCourier(command=self.command)),
            "other": Agent(),
        }
        environ = {**os.environ, MARK: str(self.directory)}
        return CommandCourier(lambda: Settings(agents=agents), environ)

    def told(self) -> list[dict[str, object]]:
        try:
            lines = (self.directory / "received").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def received(self) -> Sequence[Received]:
        return [Received(str(each["id"]), str(each["text"])) for each in self.told()]

    def left_behind(self) -> int:
        """Programs of this place, and what they started."""
        return len(carrying(MARK, str(self.directory)))
