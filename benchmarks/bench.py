"""
Times irees beside PyTorch, ONNX Runtime and IREE, in one run, interleaved.

    python benchmarks/bench.py [--only NAME ...] [--threads 1 2] [--repeat N] [--write FILE]

Every repetition runs each contender in turn, so that a change of the machine's speed falls on
all of them, after a pause and a call that is not counted; medians and ratios are reported.
The FMA peak is measured by a kernel of independent multiply-adds in the same run. A contender
that is not installed, or that fails on a program, is a dash with the reason below the table.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import irees

ROOT = Path(__file__).parents[1]
EXPORT = ROOT.parent / "shared" / "models" / "export.py"
MODELS = (
    "resnet50", "mobilenet_v2", "bert_base", "gpt2", "llama_decode", "deepseek_moe",
    "group_norm_silu", "softmax_eltwise", "two_matmul", "topk_both", "topk_indices",
)  # fmt: skip
SIZES = (512, 1024)
ROWS = ((64, 4096), (1, 1 << 22))
"""Rows to sort, and how long they are."""

PAUSE = 0.05
"""Seconds before each contender, after which no thread pool spins any more."""

QUADRATIC = 1 << 13
"""Longer rows are not given to IREE, whose sort takes time that grows with their square."""

PEAK = """
#include <stdint.h>
typedef float v __attribute__((vector_size(%d)));
__attribute__((visibility("default"))) float peak(int64_t n) {
  v x[12], a = {0}, b = {0};
  for (int i = 0; i < 12; i++) x[i] = (v){0} + (float)i;
  a += 0.999f; b += 0.001f;
  for (int64_t k = 0; k < n; k++)
    for (int i = 0; i < 12; i++) x[i] = x[i] * a + b;
  v s = x[0];
  for (int i = 1; i < 12; i++) s += x[i];
  return s[0];
}
"""

Call = Callable[[], object]


def fma_peak() -> float:
    """GFLOP/s of one thread doing nothing but independent vector multiply-adds; best of 20."""
    from irees.backends.c.toolchain import compile_library
    from irees.target import cpu_target

    width = cpu_target().vector_bytes
    image = compile_library({"peak": PEAK % width})
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(image)
        file.flush()
        function = ctypes.CDLL(file.name).peak
        function.argtypes, function.restype = [ctypes.c_int64], ctypes.c_float
        count = 1_000_000
        best = min(timed(lambda: function(count)) for _ in range(20))
    return 2 * 12 * (width // 4) * count / best / 1e9


def timed(call: Call) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


class Contender:
    """One implementation of one program."""

    def __init__(self, name: str, make: Callable[[], Call]):
        self.name = name
        self.times: list[float] = []
        self.reason = ""
        self.call: Call | None = None
        try:
            self.call = make()
            self.call()
        except Exception as error:
            self.reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
            self.call = None

    @property
    def median(self) -> float | None:
        """Milliseconds."""
        return statistics.median(self.times) * 1e3 if self.times else None


def matmul_text(n: int) -> str:
    """An n x n x n f32 product."""
    t = f"tensor<{n}x{n}xf32>"
    return f"""func.func @main(%a: {t}, %b: {t}) -> {t} {{
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : {t}
  %f = linalg.fill ins(%c : f32) outs(%e : {t}) -> {t}
  %r = linalg.matmul ins(%a, %b : {t}, {t}) outs(%f : {t}) -> {t}
  return %r : {t}
}}"""


def sort_text(rows: int, size: int) -> str:
    """torch.sort of rows of f32, as torch-mlir lowers it."""
    values, places = f"tensor<{rows}x{size}xf32>", f"tensor<{rows}x{size}xi64>"
    return f"""#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: {values}) -> ({values}, {places}) {{
  %e = tensor.empty() : {places}
  %i = linalg.generic {{indexing_maps = [#map], iterator_types = ["parallel", "parallel"]}} outs(%e : {places}) {{
  ^bb0(%o: i64):
    %d = linalg.index 1 : index
    %c = arith.index_cast %d : index to i64
    linalg.yield %c : i64
  }} -> {places}
  %s:2 = iree_linalg_ext.sort dimension(1) outs(%x, %i : {values}, {places}) {{
  ^bb0(%a: f32, %b: f32, %p: i64, %q: i64):
    %less = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  }} -> {values}, {places}
  return %s#0, %s#1 : {values}, {places}
}}"""


def use_irees(source: str | Path, inputs: list[np.ndarray]) -> Call:
    """irees, target cpu."""
    program = irees.compile(source)
    return lambda: program(*inputs)


def use_iree(source: str | Path, inputs: list[np.ndarray], threads: int) -> Call:
    """IREE, llvm-cpu for this machine; the highest opt level that compiles."""
    import iree.compiler as compiler
    import iree.runtime as runtime

    if isinstance(source, str) and "linalg_ext.sort" in source and inputs[0].shape[1] > QUADRATIC:
        raise RuntimeError("not run: its sort takes time that grows with the square of the row")
    text = source if isinstance(source, str) else source.read_text()
    for level in ("O3", "O2", "O1"):
        flags = ["--iree-llvmcpu-target-cpu=host", f"--iree-opt-level={level}"]
        try:
            blob = compiler.compile_str(text, target_backends=["llvm-cpu"], extra_args=flags)
            break
        except compiler.CompilerToolError:
            if level == "O1":
                raise
    runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = runtime.Config("local-sync" if threads == 1 else "local-task")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, blob))
    main = context.modules.module["main"]
    arrays = [runtime.asdevicearray(config.device, x) for x in inputs]
    return lambda: main(*arrays)


def use_torch(module, inputs: list[np.ndarray], threads: int) -> Call:
    """PyTorch eager."""
    import torch

    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(x) for x in inputs]

    def call() -> object:
        with torch.inference_mode():
            return module(*tensors)

    return call


def use_onnx(module, inputs: list[np.ndarray], threads: int, folder: Path, name: str) -> Call:
    """ONNX Runtime, all optimisations."""
    import onnxruntime
    import torch

    path = folder / f"{name}.onnx"
    if not path.exists():
        torch.onnx.export(
            module, tuple(torch.from_numpy(x) for x in inputs), str(path), dynamo=True,
            verbose=False,
        )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    feed = {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, feed)


def torch_module(name: str):
    """The module of one model of the shared catalogue."""
    import importlib.util

    import torch

    spec = importlib.util.spec_from_file_location("export", EXPORT)
    export = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(export)
    torch.manual_seed(0)
    module, *_ = export.catalogue()[name]()
    return module.eval()


class Product:
    """torch.matmul under the name of a module."""

    def __call__(self, a, b):
        """a @ b"""
        return a @ b


def contenders(
    name: str, folder: Path, threads: int, skip: set[str]
) -> tuple[list[Contender], float]:
    """All implementations of one program, and its flops where they are counted."""
    import torch

    flops = 0.0
    if name.startswith("matmul_"):
        n = int(name.removeprefix("matmul_"))
        rng = np.random.default_rng(0)
        inputs = [rng.standard_normal((n, n)).astype("f4") for _ in range(2)]
        source: str | Path = matmul_text(n)
        flops = 2.0 * n**3

        class Module(torch.nn.Module):
            def forward(self, a, b):
                return a @ b

        module = Module()
    elif name.startswith("sort_"):
        rows, size = map(int, name.removeprefix("sort_").split("x"))
        inputs = [np.random.default_rng(0).standard_normal((rows, size)).astype("f4")]
        source = sort_text(rows, size)

        class Sort(torch.nn.Module):
            def forward(self, x):
                return torch.sort(x, dim=1)

        module = Sort()
    else:
        given = os.environ.get("IREES_MODELS")
        base = Path(given) if given else folder
        source = base / f"{name}.mlir"
        if not source.exists():
            subprocess.run([sys.executable, str(EXPORT), str(base), name], check=True, capture_output=True)
        data = np.load(source.with_suffix(".npz"))
        inputs = [data[f"in{i}"] for i in range(sum(k.startswith("in") for k in data))]
        module = torch_module(name)
    irees.set_num_threads(threads)
    makers: dict[str, Callable[[], Call]] = {
        "irees": lambda: use_irees(source, inputs),
        "PyTorch": lambda: use_torch(module, inputs, threads),
        "ONNX Runtime": lambda: use_onnx(module, inputs, threads, folder, name),
        "IREE": lambda: use_iree(source, inputs, threads),
    }
    return [Contender(n, make) for n, make in makers.items() if n not in skip], flops


def measure(all_of: list[Contender], repeat: int, seconds: float) -> None:
    """Interleaved repetitions, within a time budget."""
    end = time.perf_counter() + seconds
    for round_number in range(repeat):
        for contender in all_of:
            if contender.call is not None:
                # Threads of the one before may still spin, waiting for more work; its own are
                # woken by a call that does not count.
                time.sleep(PAUSE)
                contender.call()
                contender.times.append(timed(contender.call))
        if round_number >= 4 and time.perf_counter() > end:
            return


def cell(contender: Contender, best: float) -> str:
    """Milliseconds, bold where best."""
    value = contender.median
    if value is None:
        return "–"
    text = f"{value:.3g}" if value < 100 else f"{value:.0f}"
    return f"**{text}**" if value <= best else text


def main() -> None:
    """Measures and prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--skip", nargs="*", default=[], help="contenders to leave out")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=20.0, help="budget of one row")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    names = arguments.only or [
        *MODELS,
        *(f"matmul_{n}" for n in SIZES),
        *(f"sort_{rows}x{size}" for rows, size in ROWS),
    ]
    peak = fma_peak()
    header = ["irees", "PyTorch", "ONNX Runtime", "IREE"]
    header = [h for h in header if h not in set(arguments.skip)]
    lines = [
        "| program | threads | " + " | ".join(header) + " | irees / PyTorch | irees / best peer | share of peak |",
        "|---|---|" + "---|" * (len(header) + 3),
    ]
    reasons: dict[str, None] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in names:
            for threads in arguments.threads:
                found, flops = contenders(name, Path(temporary), threads, set(arguments.skip))
                measure(found, arguments.repeat, arguments.seconds)
                medians = {c.name: c.median for c in found if c.median is not None}
                mine = medians.get("irees")
                peers = [v for n, v in medians.items() if n != "irees"]
                best = min(medians.values(), default=0.0)
                torch_ratio = f"{mine / medians['PyTorch']:.2f}" if mine and "PyTorch" in medians else "–"
                ratio = f"{mine / min(peers):.2f}" if mine and peers else "–"
                share = f"{flops / mine / 1e6 / (peak * threads):.0%}" if flops and mine else ""
                row = [name, str(threads), *(cell(c, best) for c in found), torch_ratio, ratio, share]
                lines.append("| " + " | ".join(row) + " |")
                print(lines[-1], flush=True)
                for contender in found:
                    if contender.reason:
                        reasons[f"- {name}, {contender.name}: {contender.reason}"] = None
    report = [
        "# Performance",
        "",
        f"Milliseconds, medians of interleaved repetitions in one run; the best is bold. "
        f"Made on {datetime.date.today()}, on {platform.machine()} "
        f"({processor()}), {os.cpu_count()} cores, by `{shlex.join(sys.argv)}`. "
        f"FMA peak measured in the same run: {peak:.0f} GFLOP/s a core.",
        "",
        *lines,
        *(["", "Not measured:", "", *reasons] if reasons else []),
    ]
    print("\n".join(report))
    if arguments.write:
        arguments.write.write_text("\n".join(report) + "\n")


def processor() -> str:
    """The name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")),
        "unknown",
    )


if __name__ == "__main__":
    main()
