"""
Measures this machine's peaks: FMA throughput in registers, and memory bandwidth of a copy.

`explain` and the benchmarks show a kernel's performance as a fraction of these. A sample takes a
few milliseconds, so it can be repeated next to each measurement: clock frequencies drift.
"""

from __future__ import annotations

import ctypes
import statistics
from dataclasses import dataclass

import numpy as np

from irees.backends.common.toolchain import compile_library
from irees.runtime.library import Library
from irees.target import Target, cpu_target

CHAINS = 12
"""Independent FMA chains: more than latency times units, fewer than vector registers."""

STEPS = 300_000
COPY_BYTES = 64 << 20
"""Minimum bytes of each of the two arrays of a copy; four last-level caches if that is more."""

# All values are runtime arguments: the compiler would fold a chain that starts at a known fixed
# point, such as 1 = 1 * 0.999 + 0.001.
_SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#define CHAINS %(chains)d
#define EXPORT __attribute__((visibility("default")))
typedef float v __attribute__((vector_size(%(bytes)d)));

typedef struct {
  int64_t steps;      /* of multiply-adds, or bytes to copy */
  const float *starts;
  float a, b, sum;
  const char *from;
  char *to;
  int part, parts;
  atomic_int *arrived;
  int64_t begin, end;
} job;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void multiply_adds(job *j) {
  v x[CHAINS], a = (v){0} + j->a, b = (v){0} + j->b;
  for (int i = 0; i < CHAINS; i++) x[i] = (v){0} + j->starts[i];
  for (int64_t k = 0; k < j->steps; k++)
    for (int i = 0; i < CHAINS; i++) x[i] = x[i] * a + b;
  v s = x[0];
  for (int i = 1; i < CHAINS; i++) s += x[i];
  j->sum = 0;
  for (unsigned i = 0; i < sizeof s / sizeof(float); i++) j->sum += s[i];
}

/* A new thread begins on the core of its maker, and would stay there for milliseconds. */
static void leave_for_core(int place) {
#ifdef __linux__
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
  CPU_ZERO(&one);
  place %%= CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &allowed) && place-- == 0) CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
#else
  (void)place;
#endif
}

static void *run(void *argument) {
  job *j = argument;
  leave_for_core(j->part);
  atomic_fetch_add(j->arrived, 1);
  while (atomic_load(j->arrived) < j->parts) sched_yield();
  j->begin = now();
  if (j->starts) multiply_adds(j);
  else memcpy(j->to, j->from, (size_t)j->steps);
  j->end = now();
  return NULL;
}

/* Nanoseconds from the first begin to the last end, or -1. */
static int64_t together(job *jobs, int32_t threads) {
  pthread_t ids[64];
  atomic_int arrived = 0;
  if (threads < 1 || threads > 64) return -1;
  for (int i = 0; i < threads; i++) {
    jobs[i].part = i;
    jobs[i].parts = threads;
    jobs[i].arrived = &arrived;
    if (pthread_create(ids + i, NULL, run, jobs + i)) return -1;
  }
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  int64_t begin = jobs[0].begin, end = jobs[0].end;
  for (int i = 1; i < threads; i++) {
    if (jobs[i].begin < begin) begin = jobs[i].begin;
    if (jobs[i].end > end) end = jobs[i].end;
  }
  return end - begin;
}

EXPORT int64_t fma_ns(int32_t threads, int64_t steps, const float *starts, float a, float b,
                      float *sum) {
  job jobs[64] = {0};
  for (int i = 0; i < threads && i < 64; i++)
    jobs[i] = (job){.steps = steps, .starts = starts, .a = a, .b = b};
  int64_t ns = together(jobs, threads);
  *sum = jobs[0].sum;
  return ns;
}

EXPORT int64_t copy_ns(int32_t threads, int64_t bytes, const char *from, char *to) {
  job jobs[64] = {0};
  int64_t part = threads > 0 ? bytes / threads : 0;
  for (int i = 0; i < threads && i < 64; i++)
    jobs[i] = (job){.steps = part, .from = from + part * i, .to = to + part * i};
  return together(jobs, threads);
}
"""


@dataclass(frozen=True)
class Peaks:
    """Peaks of all threads together: f32 GFLOP/s, and GB/s of bytes read and written."""

    gflops: float
    gigabytes: float


class PeakMeter:
    """
    Samples both peaks. `chains` is the number of independent FMA chains.

    Raises ToolchainError without a C compiler.
    """

    def __init__(self, target: Target | None = None, chains: int = CHAINS):
        target = target or cpu_target()
        self.chains = chains
        self.lanes = target.vector_bytes // 4
        text = _SOURCE % {"bytes": target.vector_bytes, "chains": chains}
        self._library = Library(compile_library({"peaks": text}, target=target))
        cdll = self._library.cdll
        self._fma, self._copy = cdll.fma_ns, cdll.copy_ns
        pointer = ctypes.c_void_p
        self._fma.restype = self._copy.restype = ctypes.c_int64
        self._fma.argtypes = (
            *(ctypes.c_int32, ctypes.c_int64, pointer),
            *(ctypes.c_float, ctypes.c_float, pointer),
        )
        self._copy.argtypes = (ctypes.c_int32, ctypes.c_int64, pointer, pointer)
        self._starts = np.arange(chains, dtype=np.float32)
        self._sum = np.zeros(1, np.float32)
        self._bytes = max(COPY_BYTES, 4 * target.l3_bytes)
        self._arrays: tuple[np.ndarray, np.ndarray] | None = None

    def sum_after(self, steps: int, a: float, b: float) -> float:
        """Sum over all lanes and chains after `steps` of x = x * a + b; chain i starts at i."""
        self._nanoseconds(1, steps, a, b)
        return float(self._sum[0])

    def gflops(self, threads: int, steps: int = STEPS) -> float:
        """f32 GFLOP/s of all threads together; an FMA counts as two."""
        nanoseconds = self._nanoseconds(threads, steps, 0.999, 0.001)
        return 2 * self.chains * self.lanes * steps * threads / max(1, nanoseconds)

    def gigabytes(self, threads: int) -> float:
        """GB/s, read plus written, of a copy much larger than the caches."""
        if self._arrays is None:
            # np.ones writes, so all pages are mapped.
            self._arrays = (np.ones(self._bytes, np.uint8), np.ones(self._bytes, np.uint8))
        source, target = self._arrays
        nanoseconds = self._copy(threads, self._bytes, source.ctypes.data, target.ctypes.data)
        return 2 * (self._bytes // threads * threads) / max(1, nanoseconds)

    def _nanoseconds(self, threads: int, steps: int, a: float, b: float) -> int:
        return self._fma(threads, steps, self._starts.ctypes.data, a, b, self._sum.ctypes.data)


def measure_peaks(threads: int, samples: int = 7) -> Peaks:
    """Medians of `samples` samples, about 0.2 s. Raises ToolchainError without a C compiler."""
    meter = PeakMeter()
    meter.gflops(threads)
    meter.gigabytes(threads)
    return Peaks(
        statistics.median(meter.gflops(threads) for _ in range(samples)),
        statistics.median(meter.gigabytes(threads) for _ in range(samples)),
    )
