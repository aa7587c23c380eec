"""Compiles a softmax, runs it, compares it with numpy, and shows what each phase made of it."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np

import irees

SOURCE = Path(__file__).with_name("softmax.mlir")


def main() -> None:
    """The demo."""
    counts: list[tuple[str, Counter[str]]] = []

    def count_ops(phase, module, seconds):
        counts.append((phase, Counter(op.dialect_name() for op in module.walk())))

    begin = time.perf_counter()
    program = irees.compile(SOURCE, after=count_ops)
    print(f"compiled {SOURCE.name} in {time.perf_counter() - begin:.2f} s")
    for phase, dialects in counts:
        print(f"  after {phase:18}", ", ".join(f"{n} {d}" for d, n in dialects.most_common(6)))

    x = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
    y = program(x)
    exp = np.exp(x - x.max(axis=1, keepdims=True))
    error = np.abs(y - exp / exp.sum(axis=1, keepdims=True)).max()
    print(f"largest difference to numpy: {error:.1e}")
    assert error < 1e-6

    begin = time.perf_counter()
    for _ in range(100):
        program(x)
    print(f"one call: {(time.perf_counter() - begin) * 10:.3f} ms")


if __name__ == "__main__":
    main()
