"""``secret``: what ``secret:NAME`` in a variable stands for."""

import os
import subprocess
from difflib import get_close_matches
from typing import Annotated

from subagents.cli import output
from subagents.cli.connection import paths
from subagents.cli.flags import Json, Parameter, Yes, chosen, refuse_unused
from subagents.config.settings import SecretSource
from subagents.domain.run.secret_reference import PREFIX, referenced
from subagents.errors import Conflict, RuntimeUnavailable


def secret(
    name: Annotated[str, Parameter(help="The name of the secret.", metavar="NAME")],
    /,
    *,
    check: Annotated[
        bool,
        Parameter(
            help="Ask for it as an attempt would, but in your shell's environment, and say whether "
            "it is there, not what it is."
        ),
    ] = False,
    delete: Annotated[bool, Parameter(help="Delete it from the keyring.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Store a secret in the system's keyring; it is asked for, or read from stdin.

    Workers get it by name (`--env VARIABLE=secret:NAME`): nothing of subagents stores its value.

    For example:

        subagents secret stripe

        subagents run --env STRIPE_API_KEY=secret:stripe 'python charge.py'

        subagents secret stripe --check
    """
    chosen(check=check, delete=delete)
    refuse_unused("needs --check", json=json and not check)
    source = _source(name)
    if check:
        _check(name, source, json=json)
    elif delete:
        _keyring("del", name)
    elif source is None:
        # What its verbs were called is no name that somebody gives without a thought.
        if get_close_matches(name, ("set", "check", "delete"), cutoff=0.8):
            output.note("to store one named stripe: subagents secret stripe")
            if not output.is_confirmed(f'Store a secret named "{name}"?', yes=yes):
                output.note("Nothing was stored.")
                return
        _keyring("set", name)
    else:
        raise Conflict(
            f'secret "{name}" comes from a command: {source.command[0]}',
            hint=f"store it there, or remove secrets.{name} from your subagents.toml",
        )


def _check(name: str, source: SecretSource | None, *, json: bool) -> None:
    from subagents.runtimes.process.secret_values import ask  # noqa: PLC0415

    value = ask(name, source, os.environ)
    # Never the value, and no part of it: this may be a shared screen or a log.
    where = "keyring" if source is None else source.command[0]
    if json:
        output.document({"name": name, "from": where, "characters": len(value)})
        return
    output.line(f'secret "{name}" is there: {len(value)} characters, from {where}')
    output.note(f"  to give it to a worker: --env VARIABLE={PREFIX}{name}")


def _source(name: str) -> SecretSource | None:
    """Where the user's own configuration says that it comes from; None = the keyring.

    Raises:
        UsageError: It is no name.
    """
    from subagents.config.layers import load  # noqa: PLC0415

    referenced({"NAME": f"{PREFIX}{name}"})
    return load(None, os.environ, paths=paths()).settings.secrets.get(name)


def _keyring(action: str, name: str) -> None:
    from subagents.runtimes.process.secret_values import (  # noqa: PLC0415
        keyring_command,
        last_words,
    )

    # It asks on the terminal itself; what it writes to stderr may be a traceback.
    done = subprocess.run(keyring_command(action, name), check=False, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise RuntimeUnavailable(
            f'secret "{name}": the keyring refused{last_words(done.stderr)}',
            hint=f"or let a command print it: secrets.{name}.command in subagents.toml",
        )
    output.note(
        f'secret "{name}": {"stored in" if action == "set" else "deleted from"} the keyring'
    )
