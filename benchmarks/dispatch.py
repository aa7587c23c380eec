"""
The cost of a dispatch that does nothing: microseconds from the start of one to that of the next.

    python benchmarks/dispatch.py [--threads 1 2] [--count 20000] [--repeat 15]

Kernels are launched as generated code launches them, by a host function that does nothing else:
with one workgroup, and with one for each thread. `gap` is how long one thread works between two of
them, which is not counted: the workers wait meanwhile, and after a while they sleep. Medians of
repetitions; the repetitions of all cases are interleaved.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np

import irees
from irees.backends.common.toolchain import compile_library, runtime_library
from irees.runtime.program import Code, Program

SOURCE = r"""
#include "irees.h"
#include <time.h>
#define EXPORT __attribute__((visibility("default")))

static void nothing(const irees_dispatch *d, int64_t workgroup, void *scratch) {
  (void)workgroup, (void)scratch;
  __asm__ volatile("" ::"r"(d->buffers) : "memory");
}

__attribute__((noinline)) static int32_t kernel(const irees_runtime *rt, void *const *buffers,
                                                const int64_t *scalars, int32_t *trap) {
  void *captured[] = {buffers[0]};
  int64_t numbers[] = {0};
  const irees_dispatch d = {captured, numbers, trap};
  rt->parallel(rt->pool, nothing, &d, scalars[0], 0);
  return *trap;
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

EXPORT int32_t irees_entry_0(const irees_call *call) {
  int32_t failed = 0;
  int64_t count = *(const int64_t *)call->args[0];
  int64_t scalars[] = {*(const int64_t *)call->args[1]};
  int64_t gap = *(const int64_t *)call->args[2], spent = 0, begin = 0, ready = now();
  void *buffers[] = {NULL};
  int64_t first = ready;
  for (int64_t i = 0; i < count; i++) {
    if (gap) {
      while (now() - ready < gap) {}
      begin = now();
    }
    if (kernel(call->rt, buffers, scalars, &failed)) return failed;
    if (gap) spent += (ready = now()) - begin;
  }
  *call->result_scalars = gap ? spent : now() - first;
  call->results[0] = call->result_scalars;
  return 0;
}
"""
SCALAR = {"kind": "scalar", "dtype": "i64"}
MANIFEST = {"functions": [{"name": "main", "entry": 0, "args": [SCALAR] * 3, "results": [SCALAR]}]}
GAPS = (0, 20, 200)
"""Microseconds: none, fewer than workers wait awake, more."""


def program() -> Program:
    """`main(count, workgroups, gap)`: nanoseconds of that many kernels, gaps not counted."""
    code = Code(compile_library({"dispatch": SOURCE}), runtime_library())
    return Program(code, MANIFEST)


Case = tuple[int, int, int]


def measure(threads: list[int], count: int, repeat: int) -> dict[Case, list[float]]:
    """By (threads, workgroups, gap in us), microseconds of a dispatch in each repetition."""
    run = program()
    cases = [(n, w, gap) for n in threads for w in dict.fromkeys((1, n)) for gap in GAPS]
    found: dict[Case, list[float]] = {case: [] for case in cases}
    for _ in range(repeat):
        for case in cases:
            n, workgroups, gap = case
            irees.set_num_threads(n)
            number = count if gap == 0 else max(10, count // gap)
            run(max(1, number // 10), workgroups, gap * 1000)
            found[case].append(run(number, workgroups, gap * 1000) / number / 1e3)
    return found


def main() -> None:
    """Prints a line per case."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    print("| threads | workgroups | gap us | median us | 90 % us |")
    print("|---|---|---|---|---|")
    for case, times in measure(options.threads, options.count, options.repeat).items():
        numbers = [f"{statistics.median(times):.3f}", f"{np.quantile(times, 0.9):.3f}"]
        print("| " + " | ".join([*map(str, case), *numbers]) + " |")


if __name__ == "__main__":
    main()
