#!/bin/sh
# Prolog of slurmd: a job starts only on a node that is proven. slurm.conf: Prolog=/etc/slurm/nodeproof/prolog.sh
#
# When a prolog fails, Slurm requeues the job and drains the node; the reason is in slurmd's log and, from us, on its output.
. "$(dirname "$0")/nodeproof-check.sh"
ask
may_work && exit 0
reason >&2
echo >&2
exit 1
