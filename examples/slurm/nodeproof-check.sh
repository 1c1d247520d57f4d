#!/bin/sh
# What prolog, epilog and health check share: asks nodeproof once, and sets VERDICT (sound, warning, critical, unknown) and LINE.
#
# Installed beside the three scripts. Settings, from the environment or /etc/default/nodeproof-slurm:
#   NODEPROOF             the program (default: nodeproof)
#   NODEPROOF_UNKNOWN     what a node that cannot be judged may do: refuse (default) or allow
#   NODEPROOF_WARNING     what a node with warnings may do: allow (default) or refuse
[ -r "${NODEPROOF_SETTINGS:-/etc/default/nodeproof-slurm}" ] && . "${NODEPROOF_SETTINGS:-/etc/default/nodeproof-slurm}"

ask() {
    LINE=$("${NODEPROOF:-nodeproof}" check 2>&1)
    case $? in
        0) VERDICT=sound ;;
        1) VERDICT=warning ;;
        2) VERDICT=critical ;;
        *) VERDICT=unknown ;; # 3, and whatever goes wrong with the program itself
    esac
    [ -n "$LINE" ] || LINE="nodeproof said nothing"
}

# Whether a node of this verdict may take jobs.
may_work() {
    case $VERDICT in
        sound) return 0 ;;
        warning) [ "${NODEPROOF_WARNING:-allow}" = allow ] ;;
        unknown) [ "${NODEPROOF_UNKNOWN:-refuse}" = allow ] ;;
        *) return 1 ;;
    esac
}

# One line that a reason of Slurm can hold: no quotes, no control characters, not too long.
reason() {
    printf 'nodeproof: %s' "$LINE" | tr -d '\000-\037\042\047\140\134' | cut -c1-200
}
