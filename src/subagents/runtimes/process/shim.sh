# Runs one worker and records how it ended, so that no worker depends on the daemon.
#
#     /bin/sh shim.sh DIR PROGRAM [ARGUMENT...]        (started in a session of its own)
#
# DIR holds, each file written by one process only:
#     stdin   given: a regular file, a FIFO (kept open, never blocks), or absent = /dev/null
#     in      given, with the FIFO stdin: what is appended to it is fed to the worker, until the
#             feeder is ended: then the worker's input ends
#     feeder  the feeder: process id and start ticks
#     setup   given: what a shell runs before the worker, or absent; its output goes to err, and
#             where it fails its exit is the worker's
#     ready   created when it has succeeded
#     claim   created by whoever may start the worker; then this shim's identity
#     pid     shim and worker: process id and start ticks; boot id; session id (last line = complete)
#             in either, where there is one, the directory of the cgroup that all of them are in
#     out err what the worker wrote
#     exit    "code N", "signal N", or "never" (the worker was not started); " alone" behind it when
#             nothing that the worker started was alive any more; ends with a newline
#
# With SUBAGENTS_SHIM_CGROUP it is in that cgroup already, and only writes it down.
# With SUBAGENTS_SHIM_UMASK and SUBAGENTS_SHIM_FILE_BLOCKS the worker, and not this, is kept to those.
# With SUBAGENTS_SHIM_REAPS (launcher.py sets it) this shim adopts whatever below it loses its
# parent: so what has no living child has no living descendant. What the worker left behind keeps
# the shim, so that it can be found; ending it is the daemon's.
#
# Rules kept here:
# - Nothing is forked before the end is on record but the worker (before it, its feeder and setup): a
#   fork fails exactly when the machine is in trouble. Hence no mv: a file counts as written when its last line is complete.
# - The worker runs in the foreground: background jobs of a non-interactive shell ignore SIGINT.
# - Signals get a handler that does nothing: ignoring them would be inherited by the worker, while
#   handlers are reset in it. So TERM to the whole group ends the worker, and this shim records it.
# - Names start with subagents_shim_: another name could be a variable that is meant for the worker.
# - All is in { }, so that it is read before it runs: an upgrade may replace this file meanwhile.
#
# Limit: sh tells a death by signal N as status 128+N, so a worker that itself exits with 129 to 192
# is recorded as ended by a signal.
{
    subagents_shim_dir=$1
    shift
    subagents_shim_reaps=${SUBAGENTS_SHIM_REAPS-}
    subagents_shim_cgroup=${SUBAGENTS_SHIM_CGROUP-}
    subagents_shim_umask=${SUBAGENTS_SHIM_UMASK-}
    subagents_shim_file_blocks=${SUBAGENTS_SHIM_FILE_BLOCKS-}
    unset SUBAGENTS_SHIM_REAPS SUBAGENTS_SHIM_CGROUP SUBAGENTS_SHIM_UMASK
    unset SUBAGENTS_SHIM_FILE_BLOCKS
    trap : HUP INT QUIT TERM USR1 USR2 ALRM PIPE

    # O_EXCL: of any number of shims for one DIR exactly one goes on.
    set -C
    true >"$subagents_shim_dir/claim" || exit 0
    set +C

    # Sets pid, ticks and session of the process whose stat file is $1 ("-" where there is no /proc).
    subagents_shim_stat() {
        subagents_shim_pid=- subagents_shim_ticks=- subagents_shim_session=-
        [ -r "$1" ] && read -r subagents_shim_line <"$1" || return 0
        subagents_shim_pid=${subagents_shim_line%% *}
        set -f
        # The name in parentheses may hold anything; what follows the last one is numbers.
        set -- ${subagents_shim_line##*) }
        set +f
        subagents_shim_session=$4 subagents_shim_ticks=${20}
    }

    # Whether no child of this shim is alive; false where nobody can tell.
    subagents_shim_is_alone() {
        [ -n "$subagents_shim_reaps" ] && [ -r "/proc/$$/task/$$/children" ] || return 1
        # There is no newline at its end, so that read fails although it has read.
        read -r subagents_shim_line <"/proc/$$/task/$$/children"
        for subagents_shim_pid in $subagents_shim_line; do
            read -r subagents_shim_line <"/proc/$subagents_shim_pid/stat" || continue
            case ${subagents_shim_line##*) } in
                Z* | X*) ;;
                *) return 1 ;;
            esac
        done
    }

    # Whether the node that this is on may still run workers: by the deadline beside the attempts
    # (node_deadline.py), where there is one. What ends them after it looks at processes that are
    # there; this is for a daemon that was frozen before it started us.
    subagents_shim_may_start() {
        subagents_shim_line=$subagents_shim_dir/../../../node.deadline
        [ -e "$subagents_shim_line" ] || return 0
        subagents_shim_until=0 subagents_shim_again=1
        until [ "$subagents_shim_until" = "$subagents_shim_again" ]; do
            read -r subagents_shim_until subagents_shim_again subagents_shim_of subagents_shim_pid \
                <"$subagents_shim_line" || return 0
        done
        [ "$subagents_shim_of" = "$subagents_shim_boot" ] || return 1
        read -r subagents_shim_now subagents_shim_line </proc/uptime || return 1
        # Seconds with two decimals; a number that begins with zeros is decimal for [, too.
        [ "${subagents_shim_now%.*}${subagents_shim_now#*.}0" -lt "$subagents_shim_until" ]
    }

    subagents_shim_boot=-
    if [ -r /proc/sys/kernel/random/boot_id ]; then
        read -r subagents_shim_boot </proc/sys/kernel/random/boot_id
    fi
    subagents_shim_stat "/proc/$$/stat"
    subagents_shim_own="shim $$ $subagents_shim_ticks"
    [ -z "$subagents_shim_cgroup" ] || subagents_shim_own="$subagents_shim_own
cgroup $subagents_shim_cgroup"
    printf '%s\nboot %s\n' "$subagents_shim_own" "$subagents_shim_boot" >"$subagents_shim_dir/claim"

    subagents_shim_feeder=
    if [ -f "$subagents_shim_dir/in" ]; then
        # It waits for the worker to open the other end. A regular file, because what is appended to
        # it survives whoever wrote, and can be read again.
        command -p tail -c +1 -f "$subagents_shim_dir/in" >"$subagents_shim_dir/stdin" 2>/dev/null &
        subagents_shim_feeder=$!
        subagents_shim_stat "/proc/$subagents_shim_feeder/stat"
        printf 'feeder %s %s\nboot %s\n' "$subagents_shim_feeder" "$subagents_shim_ticks" \
            "$subagents_shim_boot" >"$subagents_shim_dir/feeder"
    fi

    (
        if [ -n "$subagents_shim_feeder" ]; then
            exec <"$subagents_shim_dir/stdin"
        elif [ -p "$subagents_shim_dir/stdin" ]; then
            exec <>"$subagents_shim_dir/stdin"
        elif [ -f "$subagents_shim_dir/stdin" ]; then
            exec <"$subagents_shim_dir/stdin"
        else
            exec </dev/null
        fi
        exec >>"$subagents_shim_dir/out"
        exec 2>>"$subagents_shim_dir/err"
        subagents_shim_may_start || exit 1
        # $$ is still the shim here; /proc/self is whoever opens it.
        subagents_shim_stat /proc/self/stat
        [ "$subagents_shim_pid" != - ] || subagents_shim_pid=$(exec sh -c 'echo "$PPID"')
        # No worker without a record of it.
        printf '%s\nworker %s %s\nboot %s\nsession %s\n' "$subagents_shim_own" \
            "$subagents_shim_pid" "$subagents_shim_ticks" "$subagents_shim_boot" \
            "$subagents_shim_session" >"$subagents_shim_dir/pid" || exit 1
        [ -z "$subagents_shim_umask" ] || umask "$subagents_shim_umask"
        [ -z "$subagents_shim_file_blocks" ] || ulimit -f "$subagents_shim_file_blocks"
        if [ -f "$subagents_shim_dir/setup" ]; then
            /bin/sh "$subagents_shim_dir/setup" </dev/null >&2 || exit
            true >"$subagents_shim_dir/ready"
        fi
        exec "$@"
    )
    subagents_shim_status=$?
    if [ -n "$subagents_shim_feeder" ]; then
        kill "$subagents_shim_feeder" 2>/dev/null
        wait "$subagents_shim_feeder" 2>/dev/null
    fi

    if ! [ -s "$subagents_shim_dir/pid" ]; then
        subagents_shim_how=never
    elif [ "$subagents_shim_status" -gt 128 ] && [ "$subagents_shim_status" -le 192 ]; then
        subagents_shim_how="signal $((subagents_shim_status - 128))"
    else
        subagents_shim_how="code $subagents_shim_status"
    fi
    subagents_shim_alone=
    subagents_shim_is_alone && subagents_shim_alone=" alone"
    # A full disk delays the record, it never loses it; a deleted directory needs none.
    until printf '%s\n' "$subagents_shim_how$subagents_shim_alone" >"$subagents_shim_dir/exit"; do
        [ -d "$subagents_shim_dir" ] || exit 1
        command -p sleep 1
    done
    if [ -n "$subagents_shim_reaps" ] && [ -r "/proc/$$/task/$$/children" ]; then
        until subagents_shim_is_alone; do command -p sleep 1; done
    fi
    exit 0
}
