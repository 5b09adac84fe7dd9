"""Runs a command within limits and measures it with all processes that it starts.

    limited.py CPU_SECONDS WALL_SECONDS MEGABYTES REPORT COMMAND...

REPORT gets two lines: CPU seconds, wall seconds and megabytes, with ` | ` between them; and why the command was stopped or failed,
or nothing. The limits hold for all processes together, and memory is looked at every half second. The tools of the shell miss
processes that nobody waits for, such as the JVM of Spark; this one adopts them (man 2 prctl, PR_SET_CHILD_SUBREAPER). Linux alone.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
# Seconds that the processes which outlive the command have to end.
GRACE = 20


def descendants():
    """The fields of /proc/PID/stat, from the state on, of each process below this one, by process."""
    stats, children = {}, {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    stats[int(name)] = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # It has ended.
            children.setdefault(int(stats[int(name)][1]), []).append(int(name))
    found, waiting = {}, [os.getpid()]
    while waiting:
        for process in children.get(waiting.pop(), []):
            found[process] = stats[process]
            waiting.append(process)
    return found


def cpu_seconds(processes):
    """User and system time of running processes and of ended ones."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = sum(sum(map(int, fields[11:15])) for fields in processes.values())
    return ended.ru_utime + ended.ru_stime + running / TICK


def megabytes(processes, peak):
    """Memory of all processes, or `peak` if that is about as much. Several share pages, so that each counts for its share of them;
    the kernel needs long to tell the share of a large process, and is asked only where the peak may rise by 2 %."""
    resident = sum(int(fields[21]) for fields in processes.values()) * PAGE / 1e6
    if resident <= 1.02 * peak:
        return peak
    if len(processes) == 1:
        return resident
    total = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except OSError:
            continue  # It has ended.
    return max(peak, total / 1e6)


def reap(deadline):
    """Waits for every process below this one, and kills those that run at the deadline."""
    while processes := descendants():
        if time.monotonic() > deadline:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.1)


def main(cpu_limit, wall_limit, memory_limit, report, *command):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = time.monotonic()
    running = subprocess.Popen(command)
    peak, why = 0.0, ""
    while not why:
        try:
            running.wait(0.5)
            break
        except subprocess.TimeoutExpired:
            processes = descendants()
            peak = megabytes(processes, peak)
            if cpu_seconds(processes) > float(cpu_limit):
                why = f"stopped at the limit of {cpu_limit} CPU s"
            elif time.monotonic() - start > float(wall_limit):
                why = f"stopped at the limit of {wall_limit} s"
            elif peak > float(memory_limit):
                why = f"stopped at the limit of {memory_limit} MB"
    wall = time.monotonic() - start
    reap(0 if why else start + wall + GRACE)
    peak = max(peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6)
    if running.returncode:
        why = f"failed with status {running.returncode}"
    with open(report, "w") as file:
        file.write(f"{cpu_seconds({}):.1f} | {wall:.1f} | {peak:.0f}\n{why}\n")
    sys.exit(bool(why))


if __name__ == "__main__":
    main(*sys.argv[1:])
