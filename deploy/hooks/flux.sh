#!/bin/sh
# Flux: tells perfd that a job begins or ends on this node. `flux.sh begin` for [run.prolog], `flux.sh end` for [run.epilog] of
# the IMP, which sets FLUX_JOB_ID and FLUX_JOB_USERID and runs it as root; per-rank = true, so that each node of a job calls
# (docs/scheduler_hook.md has the lines).
# Source: flux-config-job-manager(5), flux-config-security-imp(5).
# Ends with 0 whatever happens: another code drains the node.
/usr/bin/timeout -s KILL 1 /usr/bin/perfctl hook "$1" --scheduler Flux --job "$FLUX_JOB_ID" --user "$FLUX_JOB_USERID" \
  --address unix:/run/perfd/perfd.sock --timeout 300ms >/dev/null 2>&1
exit 0
