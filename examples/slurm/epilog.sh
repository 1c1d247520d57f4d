#!/bin/sh
# Epilog of slurmd: what a job left broken keeps the next one away. slurm.conf: Epilog=/etc/slurm/nodeproof/epilog.sh
#
# A node that cannot be judged is left to the prolog and the health check: the job that just ended is not to blame for it.
. "$(dirname "$0")/nodeproof-check.sh"
ask
[ "$VERDICT" = critical ] || exit 0
reason >&2
echo >&2
exit 1
