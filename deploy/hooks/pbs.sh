#!/bin/sh
# PBS and Torque: tells perfd that a job begins or ends on this node. One file under four names in PBS_HOME/mom_priv/, owned by
# root, mode 0500: prologue, epilogue (first node of a job), prologue.parallel, epilogue.parallel (Torque: its other nodes).
# Arguments by position: 1 job id, 2 user; epilogue: 6 resources, 7 queue; prologue of Torque: 5 resources, 6 queue.
# Source: pbs_mom manual, "prologue and epilogue"; Torque manual, "Prologue and epilogue scripts".
# Ends with 0 whatever happens: another code requeues or deletes the job.
case $0 in
  *prologue*) edge=begin ;;
  *) edge=end ;;
esac
/usr/bin/timeout -s KILL 1 /usr/bin/perfctl hook "$edge" --scheduler PBS --job "$1" --user "$2" \
  --address unix:/run/perfd/perfd.sock --timeout 300ms >/dev/null 2>&1
exit 0
