#!/usr/bin/env python3
"""A host that takes the CPUs away, made here: what else runs on this machine finds each CPU gone for so long, again and again.

  take_cpus.py SHARE MEAN SECONDS    e.g. 0.4 0.04 600: 40 % of each CPU, 40 ms at a time on average, for ten minutes

Tests that pass beside it do not wait for exact times. Real-time priority (root); each CPU by itself, at random, up to ten times
the mean at once. The kernel counts this time as used, not as stolen: tests that ask the host (host_taken.h) are told nothing."""
import os
import random
import sys
import time


def take(cpu, share, mean, seconds, goes_on=lambda: True):
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    chance = random.Random(cpu)
    end = time.monotonic() + seconds
    while time.monotonic() < end and goes_on():
        gone = min(chance.expovariate(1 / mean), 10 * mean)
        back = time.monotonic() + gone
        while time.monotonic() < back:
            pass
        time.sleep(gone * (1 - share) / share * chance.uniform(0.5, 1.5))


def main():
    try:
        share, mean, seconds = (float(x) for x in sys.argv[1:])
    except ValueError:
        sys.exit(__doc__)
    if not (0 < share < 1 and mean > 0 and seconds > 0):
        sys.exit(__doc__)
    first, *others = sorted(os.sched_getaffinity(0))
    parent = os.getpid()
    for cpu in others:
        if os.fork() == 0:
            take(cpu, share, mean, seconds, lambda: os.getppid() == parent)
            os._exit(0)
    take(first, share, mean, seconds)


if __name__ == "__main__":
    main()
