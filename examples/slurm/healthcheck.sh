#!/bin/sh
# HealthCheckProgram of slurmd: drains a node that is not sound, and takes back only what it did itself. slurm.conf:
#   HealthCheckProgram=/etc/slurm/nodeproof/healthcheck.sh
#   HealthCheckInterval=60
#   HealthCheckNodeState=ANY
. "$(dirname "$0")/nodeproof-check.sh"
node=${SLURMD_NODENAME:-$(hostname -s)}
ask
state=$(scontrol show node --oneliner "$node" 2>/dev/null)
if ! may_work; then
    case $state in
        *DRAIN*) ;; # somebody did already, with a reason of their own
        *) scontrol update NodeName="$node" State=DRAIN Reason="$(reason)" ;;
    esac
    exit 0
fi
case $state in
    *DRAIN*Reason=nodeproof:*) scontrol update NodeName="$node" State=RESUME ;;
esac
exit 0
