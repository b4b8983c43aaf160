"""Shared harness of the peer benchmarks.

Every case runs in a fresh process, so that its peak memory is its own, and prints one JSON object
on one line:

    bench, impl, shape     what was measured
    fwd_ms, fwd_bwd_ms     medians in milliseconds (null: not applicable, or skipped)
    peak_mb                peak resident memory above the level after import, inputs included
    <name>_min_ms          fastest run
    fwd_peak_mb            the same peak, after the forward passes only
    others_cpu             share of the machine's CPU time taken by other processes meanwhile:
                           repeat the case if it is not near 0
    skipped                "memory" when the case would need more than MEMORY_LIMIT_GB
    malloc                 "default", or "retaining" when the C library keeps freed memory

Much of an eager implementation's time goes into fresh pages for its large temporaries. Tuned
set-ups avoid it with another allocator; glibc's own settings have the same effect (better times,
while peak_mb then means little):

    MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=68719476736 python attention.py

Linux only (reads /proc). The number of threads is 2, or PEERS_THREADS. Run one case alone with
`--case '{"impl": ..., "shape": ...}'`.
"""

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import traceback

THREADS = int(os.environ.get("PEERS_THREADS", "2"))
MEMORY_LIMIT_GB = 12
MIN_RUNS, MAX_RUNS, MIN_SECONDS, WARM_UPS = 7, 300, 1.0, 2

os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
os.environ.setdefault("MKL_NUM_THREADS", str(THREADS))
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")


def main(script, cases, build, prepare=None):
    """Run every case, or the one named by `--case`.

    `cases`: dicts with at least `impl` and `shape`. `build(**case)` returns {name: function to
    time}, in the order of timing; `prepare(**case)` runs before the memory baseline is taken.
    """
    if sys.argv[1:2] == ["--case"]:
        case = json.loads(sys.argv[2])
        print(json.dumps(run_case(script, case, build, prepare)), flush=True)
        return
    for case in cases:
        command = [sys.executable, script, "--case", json.dumps(case)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        lines = done.stdout.strip().splitlines()
        died = {"bench": bench_name(script), **case, "failed": f"exit status {done.returncode}"}
        print(lines[-1] if lines else json.dumps(died), flush=True)


def run_case(script, case, build, prepare):
    import torch

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    row = {"bench": bench_name(script), **case, "fwd_ms": None, "fwd_bwd_ms": None, "peak_mb": None}
    row["malloc"] = "retaining" if "MALLOC_TRIM_THRESHOLD_" in os.environ else "default"
    if prepare:
        prepare(**case)
    gc.collect()
    baseline = peak_kb()
    limit_memory()
    clock = CpuClock()
    try:
        for name, run in build(**case).items():
            row[f"{name}_ms"], row[f"{name}_min_ms"] = measure(run)
            if name == "fwd":
                row["fwd_peak_mb"] = mb_above(baseline)
        row["peak_mb"] = mb_above(baseline)
    except Exception as error:
        if out_of_memory(error):
            row["skipped"] = "memory"
        else:
            traceback.print_exc()
            row["failed"] = repr(error)[:200]
    row["others_cpu"] = clock.others()
    return row


def measure(run):
    """Median and minimum milliseconds over at least MIN_RUNS runs and MIN_SECONDS."""
    for _ in range(WARM_UPS):
        run()
    times = []
    while len(times) < MIN_RUNS or (sum(times) < MIN_SECONDS and len(times) < MAX_RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return round(1e3 * statistics.median(times), 3), round(1e3 * min(times), 3)


class CpuClock:
    """Measures how much CPU time other processes take, as a share of the machine's."""

    def __init__(self):
        self.start = self.read()

    @staticmethod
    def read():
        own = os.times()
        with open("/proc/stat") as stat:
            jiffies = [int(field) for field in stat.readline().split()[1:9]]
        busy = (sum(jiffies) - jiffies[3] - jiffies[4]) / os.sysconf("SC_CLK_TCK")
        return own.elapsed, busy, own.user + own.system + own.children_user + own.children_system

    def others(self):
        wall, busy, own = (now - then for now, then in zip(self.read(), self.start))
        return round(max(0.0, busy - own) / max(wall * os.cpu_count(), 1e-9), 3)


def limit_memory():
    """Let allocations fail once the process holds MEMORY_LIMIT_GB more than now."""
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(
        resource.RLIMIT_AS, (mapped + MEMORY_LIMIT_GB * 2**30, resource.RLIM_INFINITY)
    )


def out_of_memory(error):
    text = str(error).lower()
    return isinstance(error, MemoryError) or "allocate" in text or "out of memory" in text


def peak_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def mb_above(baseline):
    return round((peak_kb() - baseline) / 1024, 1)


def bench_name(script):
    return os.path.splitext(os.path.basename(script))[0]
