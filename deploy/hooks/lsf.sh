#!/bin/sh
# LSF: tells perfd that a job begins or ends on this host. In lsb.queues or lsb.applications:
#   HOST_PRE_EXEC  = /etc/perfd/lsf.sh begin
#   HOST_POST_EXEC = /etc/perfd/lsf.sh end
# and LSB_PRE_POST_EXEC_USER=root in lsf.sudoers: as the job's own user it would work too, for that user's jobs only.
# Source: LSF reference, "lsb.queues", "lsf.sudoers", "Environment variables set for job execution".
# Ends with 0 whatever happens: another code requeues the job.
# A job of an array is its id and its index; its hosts may repeat, one word per slot.
job=$LSB_JOBID
[ "${LSB_JOBINDEX:-0}" = 0 ] || job="$job[$LSB_JOBINDEX]"
nodes=
for host in $LSB_HOSTS; do
  case ",$nodes," in *",$host,"*) ;; *) nodes=${nodes:+$nodes,}$host ;; esac
done
/usr/bin/timeout -s KILL 1 /usr/bin/perfctl hook "$1" --scheduler LSF --job "$job" --user "${LSFUSER:-$USER}" \
  ${LSB_QUEUE:+--partition "$LSB_QUEUE"} ${nodes:+--nodes "$nodes"} \
  --address unix:/run/perfd/perfd.sock --timeout 300ms >/dev/null 2>&1
exit 0
