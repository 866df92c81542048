"""Git worktrees: where runs work apart, and how their work comes home."""

from subagents.extension import Command, Extension, SettingsTable

COMMANDS = "subagents.extensions.worktrees.worktree_commands"

extension = Extension(
    name="worktrees",
    commands={
        "See what happens": (
            Command("worktree list", f"{COMMANDS}:list_", "List worktrees of runs"),
            Command("worktree diff", f"{COMMANDS}:diff", "Show what a run changed in its worktree"),
        ),
        "Take part": (
            Command("worktree merge", f"{COMMANDS}:merge", "Merge what a run did in its worktree"),
            Command("worktree prune", f"{COMMANDS}:prune", "Remove worktrees that are merged"),
        ),
    },
    retired={
        "--worktree": "--isolation worktree",
        "diff": "subagents worktree diff RUN",
        "merge": "subagents worktree merge RUN",
        "worktree remove": "subagents worktree prune removes what is merged",
    },
    parents={"worktree": "Look at what runs did apart, and bring it home"},
    settings=(
        SettingsTable(
            "worktrees",
            "subagents.extensions.worktrees.worktree_settings:RepositorySettings",
            is_named=True,
        ),
    ),
    routes=("subagents.extensions.worktrees.worktree_routes",),
    parts="subagents.extensions.worktrees.same_paths:SamePaths",
    worker_env="subagents.extensions.worktrees.previous_worktrees:worker_env",
    worktrees="subagents.extensions.worktrees.git_worktrees:GitWorktrees",
    checks="subagents.extensions.worktrees.worktree_checks:checks",
)
