"""How this package was installed, as far as that says how to install more of it."""

import importlib.util
import json
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

NAME: Final = "subagents"
UV_RECEIPT: Final = "uv-receipt.toml"
"""What ``uv tool install`` leaves in the environment that it makes."""
PIPX_METADATA: Final = "pipx_metadata.json"


def extra_command(extra: str, *, prefix: str = sys.prefix) -> str:
    """The line of shell that adds an extra to this installation.

    Args:
        extra: Its name.
        prefix: The environment that the package is in.
    """
    place = Path(prefix)
    if (place / UV_RECEIPT).exists():
        # It would take away the extras that are not named again.
        return f"uv tool install {_source(*_kept(place / UV_RECEIPT), extra)}"
    if (place / PIPX_METADATA).exists():
        return f"pipx runpip {NAME} install {_source(extra)}"
    python = shlex.quote(sys.executable)
    has_pip = importlib.util.find_spec("pip") is not None
    program = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    return f"{program} {_source(extra)}"


def _kept(receipt: Path) -> list[str]:
    import tomllib  # noqa: PLC0415  as below

    with suppress(OSError, ValueError, KeyError):
        found = tomllib.loads(receipt.read_text("utf-8"))["tool"]["requirements"]
        return [name for each in found if each["name"] == NAME for name in each.get("extras", ())]
    return []


def _source(*extras: str) -> str:
    """What was installed, with these extras: a checkout, a repository, or the name in an index."""
    # Late: it is 40 modules, and hardly ever asked for.
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415

    with_extras = f"[{','.join(sorted(set(extras)))}]"
    try:
        found = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        found = {}
    url = str(found.get("url", ""))
    if not url:
        return shlex.quote(f"{NAME}{with_extras}")
    if not url.startswith("file:"):
        vcs = found.get("vcs_info", {}).get("vcs")
        return shlex.quote(f"{NAME}{with_extras} @ {f'{vcs}+' if vcs else ''}{url}")
    is_editable = found.get("dir_info", {}).get("editable", False)
    path = shlex.quote(f"{unquote(urlsplit(url).path)}{with_extras}")
    return f"-e {path}" if is_editable else path
