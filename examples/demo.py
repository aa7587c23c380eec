"""
Compiles a ResNet exported from PyTorch and runs it; needs no PyTorch.

    python examples/demo.py

Prints PyTorch's stored answer beside irees', the time of each phase, and the kernels.
"""

import time
from pathlib import Path

import numpy as np

import irees

HERE = Path(__file__).parent


def main() -> None:
    """Compiles, runs, compares, reports."""
    stored = np.load(HERE / "resnet_tiny.npz")
    start = time.perf_counter()
    module = irees.import_mlir(HERE / "resnet_tiny.mlir")
    seconds = {"import": time.perf_counter() - start}
    mark = time.perf_counter()

    def after(phase: str, module: object, _: float) -> None:
        nonlocal mark
        now = time.perf_counter()
        seconds[phase], mark = now - mark, now

    program = irees.compile(module, after=after)
    seconds["emit, cc, load"] = time.perf_counter() - mark
    answer = program(stored["in0"])
    best = min(timed(program, stored["in0"]) for _ in range(20))

    print("logits, PyTorch:", np.array2string(stored["out0"][0], precision=5))
    print("logits, irees:  ", np.array2string(answer[0], precision=5))
    error = np.abs(answer - stored["out0"]).max()
    print(f"largest difference: {error:.2g}   one call: {best * 1e3:.2f} ms")
    print("\nphases:")
    for name, spent in seconds.items():
        print(f"  {name:<20}{spent * 1e3:8.1f} ms")
    print("\nkernels:")
    for kernel in program.manifest["kernels"]:
        print(f"  {kernel['name']:<12}{kernel['calls']:3} x  {kernel['summary']}")
    if not error < 1e-4:
        raise SystemExit("the answers differ")


def timed(program: irees.Program, pixels: np.ndarray) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    program(pixels)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
