"""What tools print all day: hashes, identifiers, listings, code, counts of tokens; no secrets.

Lines by chance for each form, and files of this machine's Python: its sources, and the lists of
what is installed with a SHA-256 for each file.
"""

import importlib.metadata
import random
import string
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_HEX: Final = "0123456789abcdef"
_WORD: Final = string.ascii_letters + string.digits
_BASE64: Final = f"{_WORD}+/"
_FORMS: Final = (
    "commit {hex40}",
    "{hex7} (HEAD -> main, origin/main) Merge pull request #412 from ann/fix-token-refresh",
    "Author: Ann Example <ann@example.org>",
    "index {hex7}..{hex7} 100644",
    "From https://github.com/acme/widgets\n   {hex7}..{hex7}  main       -> origin/main",
    " src/app/auth/token_store.py | {num} ++++++----",
    "+    token = self._tokens.get(request.headers['x-request-id'])",
    "+    if token is None: raise AuthError('no token: log in first')",
    "-        password = getpass.getpass('Password: ')",
    "     api_key = os.environ['OPENAI_API_KEY']",
    "     client = Client(api_key=settings.api_key, max_tokens=4096)",
    "     assert response.json() == {{'token_type': 'bearer', 'expires_in': 3600}}",
    "Collecting requests==2.32.{digit}",
    "  Downloading requests-2.32.{digit}-py3-none-any.whl.metadata (4.6 kB)",
    "requests==2.32.3 --hash=sha256:{hex64}",
    '      "integrity": "sha512-{b64_86}==",',
    '      "resolved": "https://registry.npmjs.org/@types/node/-/node-22.{digit}.{digit}.tgz",',
    "added {num} packages, and audited {num} packages in {digit}s",
    "npm warn deprecated inflight@1.0.6: This module is not supported, and leaks memory.",
    "{hex12}: Pull complete",
    "Digest: sha256:{hex64}",
    "Status: Downloaded newer image for python:3.12-slim",
    "Successfully tagged acme/app:{hex7}",
    "#12 [build 4/7] RUN --mount=type=cache,target=/app/.cache pip install -r requirements.txt",
    "tests/test_auth.py::test_token_expires[{num}] PASSED                          [ {digit}%]",
    "FAILED tests/test_login.py::test_password_is_hashed - AssertionError: assert 'a' == 'b'",
    "E       KeyError: 'access_token'",
    '  File "/home/ann/src/app/auth.py", line {num}, in verify_token',
    "{num} passed, 2 skipped in 4.{digit}3s",
    "::group::Restore cache",
    "Cache restored from key: linux-node-{hex64}",
    "Request ID: {uuid}",
    "session id: {uuid}",
    "Session {uuid} resumed; 12,{num} tokens in, {num} tokens out",
    "usage: input_tokens={num} output_tokens={num} cache_read_input_tokens=48213",
    "Stats: runtime 12s - tokens 4.2k (in 3.1k / out 1.1k), max_tokens: 8192",
    '{{"id":"msg_{word24}","type":"message","role":"assistant","stop_sequence":null}}',
    '{{"tool_use_id":"toolu_{word24}","name":"Bash","input":{{"command":"ls -la"}}}}',
    '{{"idempotencyKey":"{uuid}","sessionKey":"agent:main:subagent:{uuid}"}}',
    '{{"level":"info","ts":17634{num},"msg":"request","path":"/v1/tokens","status":200}}',
    '{{"sha":"{hex40}","node_id":"MDY6Q29tbWl0","url":"https://api.github.com/repos/a/b"}}',
    '{{"etag":"W/\\"{hex32}\\"","size":{num}}}',
    "![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{b64_400})",
    "{b64_76}",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b64_43} ann@laptop",
    "ED25519 key fingerprint is SHA256:{b64_43}.",
    "256 SHA256:{b64_43} ann@laptop (ED25519)",
    "-----BEGIN CERTIFICATE-----",
    "MII{b64_61}",
    "drwxr-xr-x  2 ann ann    4096 Nov 20 14:0{digit} __pycache__",
    "-rw-r--r--  1 ann ann  {num} Nov 20 14:02 test_password_reset_token.py",
    "{hex64}  dist/app-1.2.{digit}.tar.gz",
    "{hex32}  ./assets/key-visual.png",
    "blob {hex40} 1240 1337",
    "0x7f{hex8}:  48 8b 05 {hex2} {hex2} 00 00    mov    rax,QWORD PTR [rip+0x2fe1]",
    "    at Object.<anonymous> (/app/node_modules/jsonwebtoken/verify.js:{num}:21)",
    "SyntaxError: Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON",
    "error[E0425]: cannot find value `token` in this scope",
    "error: expected one of `!` or `::`, found token: identifier",
    "warning: unused variable: `secret_key`",
    "src/lexer.rs:{num}:9: fn next_token(&mut self) -> Option<Token> {{",
    "  const token = await getToken(req, {{ audience }});",
    "  password: z.string().min(8).max(72),",
    "  apiKey: process.env.OPENAI_API_KEY,",
    "  secretName: web-tls",
    "  serviceAccountName: token-reviewer",
    "        secretKeyRef: {{ name: database, key: password }}",
    "        key: password",
    "PWD=/home/ann/src/app",
    "SSH_AUTH_SOCK=/run/user/1000/keyring/ssh",
    "XAUTHORITY=/run/user/1000/.mutter-Xwaylandauth.{up6}",
    "INVOCATION_ID={hex32}",
    "MACHINE=x86_64 KERNEL=6.1.0-{num}-amd64 #1 SMP PREEMPT_DYNAMIC",
    "Nov 20 14:02:1{digit} host sshd[{num}]: Accepted publickey for ann from 10.0.0.7 port 5022",
    "Nov 20 14:02:11 host CRON[{num}]: pam_unix(cron:session): session opened for user root(uid=0)",
    "GET /api/v1/users?page=2&sort=key&limit=50 200 in 1{digit} ms",
    "> POST /oauth/token HTTP/1.1",
    "< x-amz-request-id: {up16}",
    "< x-request-id: {uuid}",
    '< etag: "{hex32}"',
    "< set-cookie: ",
    "  ✓ logs in with a token (1{digit} ms)",
    "  ✗ refuses a wrong password",
    "The password must have at least 12 characters. The token: see below.",
    "Set the key with `export ANTHROPIC_API_KEY=...` or in the file `~/.config/app/credentials`.",
    "| `auth.tokenTtl` | seconds | `3600` | How long a token is valid. |",
    "- `secret`: the name of the secret (required)",
    "primary key: (user_id, key_name)  foreign key: users.id",
    "UPDATE 1\nkey_id | {num}\nkeyspace: system_auth",
    "Enter passphrase for key '/home/ann/.ssh/id_ed25519': ",
    "Loaded 12 keys from cache, keyring=default, keybinding=vim",
    "2026-11-20T14:02:11.{num}Z INFO  worker{{id=3}}: token bucket refilled tokens=100",
    "docker run -u 1000:1000 --rm -v /tmp:/tmp image:{hex12}",
    "rsync -az --password-file=/etc/rsync.secret host::module/path .",
    "linear issue LIN-{num}: sentry release {hex40} deployed, jira PROJ-{num} closed",
    "vault status: sealed=false version=1.18.{digit} cluster_id={uuid}",
    "heroku: release v{num} created, slug commit {hex40}",
)
_SIZES: Final = {"hex": _HEX, "word": _WORD, "b64_": _BASE64, "up": string.ascii_uppercase}


def ordinary_lines(count: int) -> Iterator[str]:
    """So many lines, the same in every run."""
    chance = random.Random(20261123)  # noqa: S311  # no secrets are made here

    class Fields(dict[str, str]):
        def __missing__(self, name: str) -> str:
            if name == "digit":
                return chance.choice(string.digits)
            if name == "num":
                return str(chance.randint(100, 99_999))
            if name == "uuid":
                return "-".join("".join(chance.choices(_HEX, k=k)) for k in (8, 4, 4, 4, 12))
            kind = name.rstrip(string.digits)
            return "".join(chance.choices(_SIZES[kind], k=int(name.removeprefix(kind))))

    for _ in range(count):
        form = chance.choice(_FORMS)
        # A field that stands twice has two values.
        yield from "".join(piece.format_map(Fields()) for piece in _apart(form)).split("\n")


def _apart(form: str) -> list[str]:
    """The form in pieces with one field each."""
    pieces, held = [], ""
    for piece in form.replace("}}", "\0").split("}"):
        held = piece.replace("\0", "}}")
        pieces.append(f"{held}}}" if "{" in held.replace("{{", "") else held)
    return pieces


def lines_of_this_machine() -> Iterator[str]:
    """Sources of Python's library, and lists of installed files."""
    library = Path(sysconfig.get_path("stdlib"))
    for source in sorted(library.glob("*.py")):
        yield from source.read_text("utf-8", "replace").splitlines()
    for package in importlib.metadata.distributions():
        yield from (package.read_text("RECORD") or "").splitlines()
        yield from (package.read_text("METADATA") or "").splitlines()
