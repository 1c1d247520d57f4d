#!/bin/bash
# Adapter of this node's stress items, made by "nodeproof deploy generate". Settings stand above the line; what is below it belongs
# to nodeproof. After a change: nodeproof stress doctor -o table
#
#   benchmark_check.sh NAME             runs an item: stream, hpl, hpcg, npu_burn
#   benchmark_check.sh describe NAME    tells in one JSON object what that would run, and runs nothing
#
# CATMONITOR_STRESS_DESCRIBE_PROTOCOL=1
set -eu

@SETTINGS@
# ---------------------------------------------------------------------------------------------------------------------------------
action=run
if [ "${1-}" = describe ]; then
    action=describe
    shift
fi
if [ $# -ne 1 ]; then
    echo "usage: $0 [describe] stream|hpl|hpcg|npu_burn" >&2
    exit 2
fi
case $1 in
stream | hpl | hpcg)
    case $CPU_EXECUTION_BACKEND in
    local) exec "$NODEPROOF" dispatch "$action" "$1" ;;
    unix)
        if [ ! -x "$CPU_RUNNER_CLIENT" ] || [ ! -S "$CPU_RUNNER_SOCKET" ]; then
            echo "$1: no client at $CPU_RUNNER_CLIENT, or no socket at $CPU_RUNNER_SOCKET; does the runner's container run?" >&2
            exit 1
        fi
        exec "$CPU_RUNNER_CLIENT" runner "$action" "$1" --socket "$CPU_RUNNER_SOCKET"
        ;;
    none) echo "$1: CPU items are not part of this deployment" >&2 ;;
    *) echo "CPU_EXECUTION_BACKEND is $CPU_EXECUTION_BACKEND: expected local, unix or none" >&2 ;;
    esac
    exit 1
    ;;
npu_burn) exec "$NODEPROOF" dispatch "$action" npu_burn ;;
*)
    echo "$1: expected stream, hpl, hpcg or npu_burn" >&2
    exit 2
    ;;
esac
