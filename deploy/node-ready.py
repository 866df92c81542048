#!/opt/subagents/bin/python
"""Exits with 0 when the daemon of this container can store what it decides."""

import os

from subagents.client.client import Client
from subagents.config.paths import Paths

with Client(Paths.resolve(os.environ).socket, timeout_s=5) as client:
    client.get("/readyz")
