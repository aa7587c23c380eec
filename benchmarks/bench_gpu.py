"""
Times irees on an NVIDIA GPU beside PyTorch, Inductor and CuPy, in one run, interleaved.

    python benchmarks/bench_gpu.py [--arch sm_90] [--only NAME ...] [--seconds S] [--write FILE]
        [--peers PyTorch CuPy] [--predict]

Every kernel is compiled first, which needs no GPU: registers, shared memory and spills are in the
page. Then each contender is called on arrays of the device, in turns, many calls between two events
of the stream, so that launches overlap as they do in use; medians are reported. Beside a program that
only moves data stands its share of the bandwidth of a copy measured in the same run, and every first
result is compared with PyTorch's. Without a driver, or without CuPy, the first part runs, the error
is told, and the exit status is 2. A second table has the roofline of an H200 and what the compiler's
cost models predict; `--predict` prints it alone, and needs no GPU.
"""

from __future__ import annotations

import argparse
import datetime
import shlex
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import programs

import irees
from irees.backends.cuda.toolchain import nvrtc_version
from irees.errors import DeviceError, IreesError
from irees.runtime.cuda import connect
from irees.target import Target, device_arch

DEFAULT_ARCH = "sm_90"
COPY_BYTES = 1 << 30
LEAST = 5
"""Rounds of all contenders."""
ROUND_SECONDS = 0.02
"""That the calls of one contender take in a round."""

KERNELS = (
    *("add_2e24", "gelu_2e24", "softmax_4096x1024", "layer_norm_4096x1024"),
    *("rms_norm_4096x1024", "transpose_4096x4096"),
    *("matmul_f16_4096", "matmul_f16_8192", "matmul_bf16_4096", "matmul_bf16_8192"),
    *("matmul_i8_4096", "matmul_4096", "attention_bf16_16x2048x64", "attention_f32_16x2048x64"),
    *("topk_both", "sort_64x4096", "sort_1x4194304"),
)
MODELS = ("resnet50", "bert_base", "gpt2")

GIGAHERTZ, LAUNCH = 1.8, 3.0
"""Of an H200: clock of a multiprocessor under load, and microseconds of a kernel that does nothing."""
GIGABYTES, COPIED = 4800, 4236
"""Bandwidth of its memory by the data sheet, and what a copy reaches."""
TERAFLOPS = {"i8": 1979, "f16": 989, "bf16": 989}
"""Its peak by the operands of a matrix product in a row's name, by the data sheet."""
SCALAR_TERAFLOPS = 67
"""The same for f32, without TF32."""

PEERS = ("Inductor", "CuPy")
"""Those that may be left out."""

CUPY: dict[str, Callable[..., Any]] = {
    "add_2e24": lambda cupy, a, b: cupy.add(a, b),
    "transpose_4096x4096": lambda cupy, x: cupy.ascontiguousarray(x.T),
    "matmul_f16_4096": lambda cupy, a, b: cupy.matmul(a, b),
    "matmul_f16_8192": lambda cupy, a, b: cupy.matmul(a, b),
    "matmul_4096": lambda cupy, a, b: cupy.matmul(a, b),
    "sort_64x4096": lambda cupy, x: cupy.sort(x, axis=1),
    "sort_1x4194304": lambda cupy, x: cupy.sort(x, axis=1),
}
"""CuPy's own kernels and libraries (cuBLAS, Thrust), where it has one for a program."""


@dataclass
class Row:
    """One program: what its kernels take, and the milliseconds of each contender."""

    name: str
    kernels: int = 0
    registers: int = 0
    shared_bytes: int = 0
    spilled_bytes: int = 0
    flops: int = 0
    bytes: int = 0
    predicted: float | None = None
    """Microseconds of the kernels of a call by the cost models, None where one has no prediction."""
    times: dict[str, float] = field(default_factory=dict[str, float])
    device: dict[str, float] = field(default_factory=dict[str, float])
    """Microseconds of the kernels and copies of one call, without what is between them."""
    host: float | None = None
    """Microseconds that the host takes to ask for one call of irees."""
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    error: float | None = None


def reason(error: BaseException) -> str:
    """The first line of what went wrong."""
    text = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {text[:120]}".replace("|", "/")


def compiled(row: Row, program: programs.Program, target: Target) -> Any:
    """The program for the target, and what its kernels take."""
    if program.name in programs.MODELS:
        from contenders import tensors

        made = irees.compile(program.module, tensors(program.inputs), target=target)
    else:
        made = irees.compile(program.source, target=target)
    launches, main = made.manifest["launches"], made.manifest["functions"][0]
    row.kernels = len(launches)
    row.registers = max(launch["registers"] for launch in launches)
    row.shared_bytes = max(launch["shared_bytes"] for launch in launches)
    row.spilled_bytes = max(launch["spilled_bytes"] for launch in launches)
    row.flops, row.bytes = main["flops"] or 0, main["bytes"] or 0
    row.predicted = predicted(made.explain(as_data=True)["dispatches"], row.kernels)
    return made


def predicted(dispatches: Sequence[dict[str, Any]], kernels: int) -> float | None:
    """Returns the microseconds of the kernels of a call, or None."""
    found = kernels * LAUNCH
    for each in dispatches:
        moved, cycles = (each["bytes"] or 0) / COPIED / 1e3, each["cycles"]
        if cycles is None and (each["flops"] or 0) >= 8 * (each["bytes"] or 0):
            return None
        found += max(moved, (cycles or 0) / GIGAHERTZ / 1e3)
    return found


def roofline(row: Row) -> float:
    """Returns the least microseconds of a row: of its bytes, or of its multiply-adds."""
    peak = next((v for k, v in TERAFLOPS.items() if f"_{k}_" in row.name), SCALAR_TERAFLOPS)
    return max(row.bytes / GIGABYTES / 1e3, row.flops / peak / 1e6)


def _short(microseconds: float) -> str:
    return f"{microseconds:.0f}" if microseconds >= 100 else f"{microseconds:.3g}"


def predictions(rows: list[Row]) -> list[str]:
    """Returns the lines of the table of what is predicted."""
    lines = [
        *("## Predicted", ""),
        "Microseconds of an H200. `roofline` is the least by the data sheet: bytes that any program of",
        f"the row moves, at {GIGABYTES} GB/s, or its arithmetic at the peak of its operands. `predicted`",
        f"is by the cost models: cycles of products and sorts at {GIGAHERTZ} GHz, bytes of other kernels at",
        f"{COPIED} GB/s, and {LAUNCH:.0f} us per kernel. A dash: a kernel has no prediction.",
        "`python benchmarks/bench_gpu.py --predict` prints this table; it needs no GPU.",
        *("", "| program | roofline | predicted | ratio |", "|---|---|---|---|"),
    ]
    for row in rows:
        least, guess = roofline(row), row.predicted
        cells = [_short(least), "–", "–"]
        if guess is not None:
            cells[1:] = [_short(guess), f"{guess / least:.1f}" if least else "–"]
        lines.append(f"| {row.name} | {' | '.join(cells)} |")
    return lines


def contenders(
    row: Row, made: Any, program: programs.Program, cupy: Any, peers: Sequence[str]
) -> dict[str, Any]:
    """What is called: functions without arguments that leave work on the current stream."""
    import torch
    from contenders import tensors

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    arguments = [x.cuda() for x in tensors(program.inputs)]
    module = program.module.cuda()
    arrays = None
    if row.name in CUPY:
        arrays = [cupy.asarray(x) for x in program.inputs]
    found: dict[str, Any] = {"irees": lambda: made(*arguments)}
    found["PyTorch"] = lambda: module(*arguments)
    if "Inductor" in peers:
        fused = torch.compile(module, mode="max-autotune" if row.name in MODELS else "default")
        found["Inductor"] = lambda: fused(*arguments)
    if arrays is not None and "CuPy" in peers:
        found["CuPy"] = lambda: CUPY[row.name](cupy, *arrays)
    return found


def compare(row: Row, found: dict[str, Any]) -> None:
    """The largest difference of irees from PyTorch, of the largest number."""
    import torch

    def first(value: Any) -> Any:
        return first(value[0]) if isinstance(value, tuple | list) else value

    with torch.inference_mode():
        mine, other = (first(found[name]()).double() for name in ("irees", "PyTorch"))
        row.error = float((mine - other).abs().max() / other.abs().max().clamp_min(1e-30))


def milliseconds(cupy: Any, call: Callable[[], object], calls: int) -> float:
    """Of one call, by events around many."""
    import torch

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    with torch.inference_mode():
        begin.record()
        for _ in range(calls):
            call()
        end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(begin, end) / calls


def host_microseconds(call: Callable[[], object], cupy: Any, calls: int = 20) -> float:
    """That the host takes to ask for one call, while the device is not waited for."""
    cupy.cuda.get_current_stream().synchronize()
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    taken = time.perf_counter() - begun
    cupy.cuda.get_current_stream().synchronize()
    return 1e6 * taken / calls


def device_microseconds(call: Callable[[], object], calls: int = 10) -> float:
    """That the device works for one call, by PyTorch's profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with torch.inference_mode(), profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    events = [e for e in found.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return sum(e.self_device_time_total for e in events) / calls


def measure(row: Row, found: dict[str, Any], cupy: Any, seconds: float) -> None:
    """Interleaved rounds within a budget; fills in medians."""
    calls: dict[str, int] = {}
    for name, call in list(found.items()):
        try:
            for _ in range(3):
                once = milliseconds(cupy, call, 1)
            calls[name] = max(1, min(1000, int(1e3 * ROUND_SECONDS / max(once, 1e-3))))
        except Exception as error:
            row.reasons[name] = reason(error)
    if "irees" in calls:
        row.host = host_microseconds(found["irees"], cupy)
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while min(map(len, times.values()), default=LEAST) < LEAST or time.perf_counter() < end:
        for name, count in calls.items():
            times[name].append(milliseconds(cupy, found[name], count))
    row.times = {name: statistics.median(each) for name, each in times.items()}
    # Last: a profiler makes later calls slower.
    row.device = {name: device_microseconds(found[name]) for name in calls}


def copy_gigabytes(cupy: Any) -> float:
    """GB/s, read and written, of a copy on the device."""
    source = cupy.zeros(COPY_BYTES, cupy.uint8)
    target = cupy.empty_like(source)
    once = min(milliseconds(cupy, lambda: cupy.copyto(target, source), 10) for _ in range(5))
    return 2 * COPY_BYTES / once / 1e6


def page(rows: list[Row], copy: float, how: str) -> str:
    """docs/performance_gpu.md. `how` says when, where and by which command."""
    names = ["irees", "PyTorch", "Inductor", "CuPy"]
    lines = ["# Performance on a GPU", "", how, ""]
    if copy:
        lines += [f"Copies: {copy:.0f} GB/s. Times in ms, medians.", ""]
    columns = ["program", *names, "irees / PyTorch", "kernels / PyTorch's", "TFLOP/s"]
    columns += ["GB/s (of copy)", "difference", "host us", "kernels", "registers", "shared"]
    columns += ["spilled"]
    lines += ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        mine, torch = row.times.get("irees"), row.times.get("PyTorch")
        cells = [row.name, *(f"{row.times[n]:.3g}" if n in row.times else "–" for n in names)]
        cells.append(f"{mine / torch:.2f}" if mine and torch else "–")
        busy = [row.device.get(name) for name in ("irees", "PyTorch")]
        cells.append(f"{busy[0] / busy[1]:.2f}" if busy[0] and busy[1] else "–")
        bound = mine and row.flops < 8 * row.bytes
        cells.append(f"{row.flops / mine / 1e9:.1f}" if mine and row.flops and not bound else "")
        rate = row.bytes / mine / 1e6 if bound and mine else 0.0
        cells.append(f"{rate:.0f} ({rate / copy:.0%})" if rate and copy else "")
        cells.append("" if row.error is None else f"{row.error:.1e}")
        cells.append("" if row.host is None else f"{row.host:.0f}")
        taken = (row.kernels, row.registers, row.shared_bytes, row.spilled_bytes)
        lines.append("| " + " | ".join([*cells, *map(str, taken)]) + " |")
    reasons = [f"- {row.name}, {n}: {why}" for row in rows for n, why in row.reasons.items()]
    lines += ["", *reasons]
    if how and any(row.kernels for row in rows):
        lines += ["", *predictions(rows)] if reasons else predictions(rows)
    return "\n".join(lines).rstrip() + "\n"


def how(target: Target, device: str) -> str:
    """When, where and by which command."""
    command = shlex.join(["python", "benchmarks/bench_gpu.py", *sys.argv[1:]])
    return (
        f"Made on {datetime.date.today()}, {device}, compiled for {target.arch} "
        f"by NVRTC {nvrtc_version()}, by `{command}`."
    )


def timed(
    name: str, folder: Path, target: Target, cupy: Any, seconds: float, peers: Sequence[str] = PEERS
) -> Row:
    """One row, measured where there is a device; what fails is among its reasons."""
    row = Row(name)
    try:
        program = (
            programs.model_of_torch(name)
            if name in programs.MODELS
            else programs.program(name, folder)
        )
        made = compiled(row, program, target)
        if cupy is not None:
            found = contenders(row, made, program, cupy, peers)
            compare(row, found)
            measure(row, found, cupy, seconds)
    except Exception as error:
        place = "irees" if isinstance(error, IreesError | RuntimeError) else "program"
        row.reasons[place] = reason(error)
    return row


def open_device(target: Target) -> tuple[Any, str, DeviceError | None]:
    """CuPy and the name of the device, or why there is none."""
    try:
        cupy = connect(target)
    except DeviceError as error:
        return None, "without a GPU: nothing was run", error
    return cupy, cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), None


def main() -> int:
    """Compiles, measures, prints and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--only", nargs="*", default=[], help="programs, of all")
    parser.add_argument("--arch", help=f"of the device, or {DEFAULT_ARCH} where there is none")
    parser.add_argument("--seconds", type=float, default=3.0, help="budget of one row")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--write", type=Path, help="the page")
    parser.add_argument("--predict", action="store_true", help="only what is predicted")
    options = parser.parse_args()
    if unknown := set(options.only) - {*KERNELS, *MODELS}:
        parser.error(f"no program {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    arch = options.arch
    if arch is None:
        try:
            arch = device_arch()
        except DeviceError:
            arch = DEFAULT_ARCH
    target = Target("cuda", arch=DEFAULT_ARCH if options.predict else arch)
    cupy, device, missing = open_device(target) if not options.predict else (None, "", None)
    copy = copy_gigabytes(cupy) if cupy is not None else 0.0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or (*KERNELS, *MODELS):
            row = timed(name, Path(folder), target, cupy, options.seconds, options.peers)
            rows.append(row)
            if not options.predict:
                print(page([row], copy, "").splitlines()[-1 if not row.reasons else -3], flush=True)
    if options.predict:
        print("\n".join(predictions(rows)))
        return 0
    text = page(rows, copy, how(target, device))
    print(text)
    if missing is not None:
        print(f"DeviceError: {missing}", file=sys.stderr)
        return 2
    if options.write:
        options.write.write_text(text)
    return 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
