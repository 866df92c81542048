"""The web page: built files, which are the same for everybody and hold no data.

They are in ``static/`` next to this module, in a checkout as in a wheel, each compressed once;
``make web`` builds them from ``web/``. All of the page is below ``/ui/``. A browser loads nothing
from anywhere else and runs no script that is not one of these files: the content security policy
says so.
"""

import gzip
import hashlib
import re
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from subagents.api.calls.call import problem
from subagents.errors import NotFound
from subagents.extensions.web.page_files import FOLDER, INDEX, MISSING, WAY_OUT
from subagents.ports import OffLoop

TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""What a page is made of; nothing else is served."""
PLACE: Final = "/ui/"
ASSET: Final = re.compile(r"/ui/((?:assets/)?[A-Za-z0-9_-][A-Za-z0-9._-]*)")
FOREVER: Final = "public, max-age=31536000, immutable"
"""The name of an asset has a hash of what is in it."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types layout"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
    "vary": "accept-encoding",
}
NOT_HERE: Final = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>subagents: no page here</title></head>
<body><h1>No page here</h1>
<p>This daemon answers calls, but {MISSING}.</p>
<p>To get it: {WAY_OUT}.</p></body></html>
"""


class WebPage:
    """ASGI application that answers with the built files.

    Args:
        off_loop: Carries the reading.
        folder: Of the files, each with ``.gz`` behind its name.
    """

    def __init__(self, off_loop: OffLoop, folder: Path = FOLDER) -> None:
        self._off_loop = off_loop
        self._folder = folder

    def answers(self, scope: Scope) -> bool:
        """Whether a request is for the page, or for where somebody looks for it."""
        path: str = scope["path"]
        return scope["method"] in {"GET", "HEAD"} and (
            path in {"/", PLACE[:-1]} or path.startswith(PLACE)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; an address that is no file is the page's own to understand."""
        await (await self._answer(scope))(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        path: str = scope["path"]
        if not path.startswith(PLACE):
            # With what stands behind the ``#``: browsers keep it.
            return Response(status_code=307, headers={**HEADERS, "location": PLACE})
        found = ASSET.fullmatch(path)
        name = INDEX if found is None or Path(found[1]).suffix not in TYPES else found[1]
        try:
            packed = await self._off_loop((self._folder / f"{name}.gz").read_bytes)
        except FileNotFoundError:
            return _missing(path, name)
        return _file(scope, name, packed)


def _file(scope: Scope, name: str, packed: bytes) -> Response:
    etag = f'"{hashlib.sha256(packed).hexdigest()[:32]}"'
    caching = FOREVER if name.startswith("assets/") else "no-cache"
    headers = {**HEADERS, "etag": etag, "cache-control": caching}
    if _takes(scope, b"if-none-match", etag.encode()):
        return Response(status_code=304, headers=headers)
    content = packed
    if _takes(scope, b"accept-encoding", b"gzip"):
        headers["content-encoding"] = "gzip"
    else:
        content = gzip.decompress(packed)
    return Response(content, headers=headers, media_type=TYPES[Path(name).suffix])


def _missing(path: str, name: str) -> Response:
    headers = {**HEADERS, "cache-control": "no-store"}
    if name == INDEX:
        return Response(NOT_HERE, 404, headers, media_type=TYPES[".html"])
    error = NotFound(f"no such file: {path}", hint="load the page again: it was built anew")
    return problem({**error.to_wire(), "status": 404}, 404, headers)


def _takes(scope: Scope, header: bytes, value: bytes) -> bool:
    return any(key == header and value in given for key, given in scope["headers"])
