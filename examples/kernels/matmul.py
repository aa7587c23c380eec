"""
A matmul from a few percent of peak to most of it, one decision at a time.

    python examples/kernels/matmul.py                     # times all steps
    python examples/kernels/matmul.py --show register-tile
    python examples/kernels/matmul.py --write docs/matmul.md

Each step is a kernel on memrefs, written by hand in scf, memref and vector ops; irees compiles it
as it is. The docstring of a step is its section of the page.

Sources: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (TOMS 2008);
Van Zee and van de Geijn, "BLIS" (TOMS 2015), whose names MR and NR are used here.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import time
from collections.abc import Callable
from datetime import date
from inspect import getdoc
from pathlib import Path

import numpy as np

import irees
from irees.backends.c.peaks import measure_peaks

SIZE = 1536
"""Rows and columns of the matrices: a multiple of all tiles."""
LANES = 8
"""f32 lanes of an AVX2 register."""
MR, NR = 6, 2 * LANES
"""Rows and columns of a register tile: 12 of the 16 vector registers of AVX2 accumulate."""


def kernel(n: int, body: str) -> str:
    """A function that computes c = a b for n x n matrices in place, with constants c0, c1, ..."""
    numbers = sorted({0, 1, LANES, MR, NR, n, *range(MR)})
    constants = "\n".join(f"  %c{i} = arith.constant {i} : index" for i in numbers)
    matrices = ", ".join(f"%{name}: memref<{n}x{n}xf32>" for name in "abc")
    return f"""func.func @main({matrices}) {{
{constants}
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<{LANES}xf32>
{body}
  return
}}"""


def dot_products(n: int) -> str:
    """
    Three loops, as in a textbook. Each element of the result is one dot product.

    The core waits twice. An addition takes about four cycles, and the next one needs its result, so
    one multiply-add is in flight where two vector units could start sixteen per cycle. And b is read
    along a column: each load brings in a cache line and uses 4 of its 64 bytes.
    """
    m = f"memref<{n}x{n}xf32>"
    return kernel(
        n,
        f"""  scf.for %i = %c0 to %c{n} step %c1 {{
    scf.for %j = %c0 to %c{n} step %c1 {{
      %sum = scf.for %k = %c0 to %c{n} step %c1 iter_args(%s = %zero) -> (f32) {{
        %x = memref.load %a[%i, %k] : {m}
        %y = memref.load %b[%k, %j] : {m}
        %p = arith.mulf %x, %y : f32
        %t = arith.addf %s, %p : f32
        scf.yield %t : f32
      }}
      memref.store %sum, %c[%i, %j] : {m}
    }}
  }}""",
    )


def vectors(n: int) -> str:
    """
    Interchange the two inner loops, and let a vector hold eight columns.

    All loads are contiguous now, and the eight sums of a vector do not depend on each other. But
    each multiply-add loads a vector of c and stores it again: the load and store ports are busy
    while the multipliers wait.
    """
    m, v = f"memref<{n}x{n}xf32>", f"vector<{LANES}xf32>"
    return kernel(
        n,
        f"""  scf.for %i = %c0 to %c{n} step %c1 {{
    scf.for %j = %c0 to %c{n} step %c{LANES} {{
      vector.store %zeros, %c[%i, %j] : {m}, {v}
    }}
    scf.for %k = %c0 to %c{n} step %c1 {{
      %x = memref.load %a[%i, %k] : {m}
      %xs = vector.broadcast %x : f32 to {v}
      scf.for %j = %c0 to %c{n} step %c{LANES} {{
        %y = vector.load %b[%k, %j] : {m}, {v}
        %s = vector.load %c[%i, %j] : {m}, {v}
        %t = vector.fma %xs, %y, %s : {v}
        vector.store %t, %c[%i, %j] : {m}, {v}
      }}
    }}
  }}""",
    )


def accumulate(n: int, panel: str, indent: str) -> str:
    """
    The loop over k of a register tile of MR x NR sums.

    `panel` loads vector h of row k of b as `%y{h}`.
    """
    m, v = f"memref<{n}x{n}xf32>", f"vector<{LANES}xf32>"
    tile = [(r, h) for r in range(MR) for h in range(2)]
    sums = ", ".join(f"%s{r}_{h} = %zeros" for r, h in tile)
    types = ", ".join(v for _ in tile)
    rows = "".join(
        f"""
  %x{r} = memref.load %a[%i{r}, %k] : {m}
  %xs{r} = vector.broadcast %x{r} : f32 to {v}
  %t{r}_0 = vector.fma %xs{r}, %y0, %s{r}_0 : {v}
  %t{r}_1 = vector.fma %xs{r}, %y1, %s{r}_1 : {v}"""
        for r in range(MR)
    )
    text = f"""%r:{len(tile)} = scf.for %k = %c0 to %c{n} step %c1 iter_args({sums}) -> ({types}) {{
{panel}{rows}
  scf.yield {", ".join(f"%t{r}_{h}" for r, h in tile)} : {types}
}}"""
    return "\n".join(indent + line for line in text.splitlines())


def places(indent: str) -> str:
    """The MR rows of a register tile, and the second half of its columns."""
    rows = [f"%i{r} = arith.addi %i, %c{r} : index" for r in range(MR)]
    return "\n".join(indent + line for line in [*rows, f"%j1 = arith.addi %j, %c{LANES} : index"])


def each_sum(line: str, indent: str) -> str:
    """A line for each of the sums of a register tile: row r, vector h, number i."""
    tile = [(r, h) for r in range(MR) for h in range(2)]
    return "\n".join(
        indent + line.format(r=r, h=h, i=i, j="%j1" if h else "%j") for i, (r, h) in enumerate(tile)
    )


def register_tile(n: int) -> str:
    """
    Hold a tile of c in registers for the whole loop over k.

    Six rows of two vectors are twelve accumulators: enough chains to hide the latency of a
    multiply-add, and with two vectors of b and one broadcast element of a they fill the sixteen
    registers of AVX2. Twelve multiply-adds now share eight loads, and c is written once.
    """
    m, v = f"memref<{n}x{n}xf32>", f"vector<{LANES}xf32>"
    panel = f"""  %y0 = vector.load %b[%k, %j] : {m}, {v}
  %y1 = vector.load %b[%k, %j1] : {m}, {v}"""
    return kernel(
        n,
        f"""  scf.for %j = %c0 to %c{n} step %c{NR} {{
    scf.for %i = %c0 to %c{n} step %c{MR} {{
{places(" " * 6)}
{accumulate(n, panel, " " * 6)}
{each_sum(f"vector.store %r#{{i}}, %c[%i{{r}}, {{j}}] : {m}, {v}", " " * 6)}
    }}
  }}""",
    )


def packed(n: int) -> str:
    """
    Copy each panel of NR columns of b into contiguous memory before it is used.

    The tile reads one cache line of b per row of a matrix that is much wider: every line lies on
    another page, the prefetcher stops at page ends, and lines whose distance is a power of two evict
    each other. The panel has none of this. It is packed once and read by all rows of a.
    """
    m, v, p = f"memref<{n}x{n}xf32>", f"vector<{LANES}xf32>", f"memref<{n}x{NR}xf32>"
    panel = f"""  %y0 = vector.load %p[%k, %c0] : {p}, {v}
  %y1 = vector.load %p[%k, %c{LANES}] : {p}, {v}"""
    return kernel(
        n,
        f"""  %p = memref.alloc() : {p}
  scf.for %j = %c0 to %c{n} step %c{NR} {{
    %j8 = arith.addi %j, %c{LANES} : index
    scf.for %k = %c0 to %c{n} step %c1 {{
      %y0 = vector.load %b[%k, %j] : {m}, {v}
      %y1 = vector.load %b[%k, %j8] : {m}, {v}
      vector.store %y0, %p[%k, %c0] : {p}, {v}
      vector.store %y1, %p[%k, %c{LANES}] : {p}, {v}
    }}
    scf.for %i = %c0 to %c{n} step %c{MR} {{
{places(" " * 6)}
{accumulate(n, panel, " " * 6)}
{each_sum(f"vector.store %r#{{i}}, %c[%i{{r}}, {{j}}] : {m}, {v}", " " * 6)}
    }}
  }}
  memref.dealloc %p : {p}""",
    )


STEPS: dict[str, Callable[[int], str]] = {
    "dot-products": dot_products,
    "vectors": vectors,
    "register-tile": register_tile,
    "packed": packed,
}
"""The steps in order."""

WHOLE = """
func.func @main(%a: memref<{n}x{n}xf32>, %b: memref<{n}x{n}xf32>, %c: memref<{n}x{n}xf32>) {{
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<{n}x{n}xf32>)
  linalg.matmul ins(%a, %b : memref<{n}x{n}xf32>, memref<{n}x{n}xf32>)
      outs(%c : memref<{n}x{n}xf32>)
  return
}}"""
HEAD = """\
# Kernel engineering: a matmul, one decision at a time

{n}×{n}×{n} in f32, on one thread. Each step is a kernel on memrefs; its whole text is printed by
`python examples/kernels/matmul.py --show STEP`. irees compiles it as it is written
([guide](guide.md#programs-on-buffers)), and a test compares each step with numpy.

* Command: `python examples/kernels/matmul.py --write docs/matmul.md`
* Machine: {machine}, {date}; the peak of a core with AVX2 multiply-adds is {peak:.0f} GFLOP/s, measured beside the steps

| step | GFLOP/s | of peak |
|---|---:|---:|
{table}
"""
TAIL = """\
## What irees does

`linalg.matmul` on the same arguments takes these decisions by a cost model, and some more: it chooses
the tile by the registers of the target, cuts the loops so that panels stay in a cache where they
would not, prefetches, and distributes blocks over threads. `irees explain` prints the candidates and
the predicted cycles.
[design/contraction.md](design/contraction.md) explains them.
"""


def best(call: Callable[[], object], seconds: float) -> float:
    """Returns the shortest time of a call, in seconds, of as many as fit into `seconds`."""
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        found = min(found, time.perf_counter() - start)
    return found


def measure(n: int, seconds: float) -> dict[str, float]:
    """
    Returns the GFLOP/s of each step on `n` x `n` matrices, with one thread.

    Raises AssertionError if a step does not compute the product.
    """
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (n, n)).astype(np.float32) for _ in range(2))
    rates = {}
    for name, make in {**STEPS, "linalg.matmul": lambda n: WHOLE.format(n=n)}.items():
        program, c = irees.compile(make(n)), np.full((n, n), np.nan, np.float32)
        program(a, b, c)
        np.testing.assert_array_equal(c, a @ b)
        shortest = best(lambda program=program, c=c: program(a, b, c), seconds)
        rates[name] = 2 * n**3 / shortest / 1e9
        print(f"{name:14} {rates[name]:7.2f} GFLOP/s", flush=True)
    return rates


OTHER_ROWS = re.compile(r"%(?:xs|[xto]|i)[1-5](?:_[01])? = |vector\.store %r#(?:[2-9]|1\d),")
"""Lines of the rows of a register tile behind the first."""
CARRIED = re.compile(r"(iter_args\([^,]*),.*(\) -> \()([^,]*),.*\)")
YIELDED = re.compile(r"(scf\.yield [^,]*),.* : ([^,]*),.*")


def excerpt(text: str) -> str:
    """Returns the loops of a kernel; of lines that are repeated for other rows, the first."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if "memref.alloc" in line or "scf.for" in line)
    kept: list[str] = []
    left = False
    for line in lines[first:-2]:
        again = OTHER_ROWS.match(line.strip()) is not None
        if again and not left:
            kept.append(" " * (len(line) - len(line.lstrip())) + "// the same for the other rows")
        elif not again:
            line = CARRIED.sub(r"\1, ...\2\3, ...)", line)
            kept.append(YIELDED.sub(r"\1, ... : \2, ...", line))
        left = again
    return "\n".join(kept)


def page(rates: dict[str, float], peak: float, machine: str) -> str:
    """Returns docs/matmul.md."""
    rows = [f"| {name} | {rate:.1f} | {rate / peak:.0%} |" for name, rate in rates.items()]
    parts = [
        HEAD.format(n=SIZE, machine=machine, date=date.today(), peak=peak, table="\n".join(rows))
    ]
    for name, make in STEPS.items():
        title = name.replace("-", " ").capitalize()
        parts.append(f"## {title}\n\n{getdoc(make)}\n\n```mlir\n{excerpt(make(SIZE))}\n```\n")
    return "\n".join([*parts, TAIL])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--show", choices=list(STEPS), help="print the kernel of a step")
    parser.add_argument("--write", type=Path, help="measure, and write the page")
    parser.add_argument("--seconds", type=float, default=3, help="for each step")
    parser.add_argument("--machine", default=platform.processor() or platform.machine())
    arguments = parser.parse_args()
    if arguments.show:
        print(STEPS[arguments.show](SIZE))
        return 0
    irees.set_num_threads(1)
    rates = measure(SIZE, arguments.seconds)
    if arguments.write:
        text = page(rates, measure_peaks(1).gflops, arguments.machine)
        arguments.write.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
