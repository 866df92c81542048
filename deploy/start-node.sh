#!/bin/sh
# The first start of a node makes the cluster or joins it; then it serves. For compose.yaml and the
# Helm chart: FIRST_NODE is the name of the node that makes the cluster, TOKENS a directory that the
# nodes share until all have joined.
#
# A token is good for one machine, once, and for a short time. It is written for its node alone.
set -eu

: "${SUBAGENTS_DAEMON__NODE:?the name of this node}"
: "${SUBAGENTS_DAEMON__STORE:?the address of the cluster}"
: "${FIRST_NODE:?the name of the node that makes the cluster}"
: "${TOKENS:=/tokens}"

mine="$TOKENS/$SUBAGENTS_DAEMON__NODE"
joined="$SUBAGENTS_HOME/joined"

make_tokens() {
    # One for each that asks, as long as this node lives.
    while sleep 1; do
        for asked in "$TOKENS"/*.asked; do
            [ -e "$asked" ] || continue
            token="${asked%.asked}.token"
            (umask 077 && subagents cluster token > "$token.new") && mv "$token.new" "$token" && rm -f "$asked"
        done
    done
}

if [ "$SUBAGENTS_DAEMON__NODE" = "$FIRST_NODE" ]; then
    [ -e "$joined" ] || { subagents cluster init > /dev/null && touch "$joined"; }
    make_tokens &
elif [ ! -e "$joined" ]; then
    : > "$mine.asked"
    until [ -s "$mine.token" ]; do sleep 1; done
    subagents cluster join - < "$mine.token"
    rm -f "$mine.token"
    touch "$joined"
fi

exec subagents serve
