"""``run`` and ``spawn``: hand work over, and wait for it where that is asked for."""

from typing import Annotated, Final

from cyclopts import Parameter
from msgspec import to_builtins

from subagents.cli.flags import Json
from subagents.cli.runs import submission
from subagents.cli.runs.environment_flags import Env, EnvFile, environment
from subagents.cli.runs.spawn_flags import SpawnFlags, to_spec

Task = Annotated[
    str,
    Parameter(
        help="The task as one argument; `-` reads it from stdin; after `--`, a command line.",
        metavar="TASK",
    ),
]
Flags = Annotated[SpawnFlags, Parameter(name="*")]
DryRun = Annotated[
    bool, Parameter(name="--dry-run", help="Show what would start, and start nothing.")
]
NO_FLAGS: Final = SpawnFlags()


def run(
    *task: Task,
    flags: Flags = NO_FLAGS,
    env: Env = (),
    env_file: EnvFile = (),
    detach: Annotated[
        bool, Parameter(name=["--detach", "-d"], help="Do not wait for the run, as `spawn`.")
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> int:
    """Run a task, wait for it to end and print its result.

    The exit code is 0 if the run succeeded, 5 if it did not and 6 if its verification failed.

    For example:

        subagents run 'wc -l *.py > lines.txt' --verify lines.txt --timeout 1m

        subagents run --agent command -- python3 -c 'print(6 * 7)'
    """
    spec, brought = to_spec(task, flags), to_builtins(environment(env, env_file))
    start = submission.spawn if detach else submission.run
    return (submission.dry_run if dry_run else start)(spec, brought, json=json)


def spawn(
    *task: Task,
    flags: Flags = NO_FLAGS,
    env: Env = (),
    env_file: EnvFile = (),
    dry_run: DryRun = False,
    json: Json = False,
) -> int:
    """Start a run and print its id. Its result is delivered to your inbox.

    For example:

        subagents spawn 'make test' --label tests --retry 2

        subagents spawn 'cat tests.log' --after tests --include-result
    """
    spec, brought = to_spec(task, flags), to_builtins(environment(env, env_file))
    start = submission.dry_run if dry_run else submission.spawn
    return start(spec, brought, json=json)
