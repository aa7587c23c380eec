"""
The parts of `first_day.py` that are about a device and its calls, not about one kernel.

`checks` calls programs as they are called in use: many times with the same arrays (graphs), with
arrays that change, on streams of PyTorch and CuPy, from several threads, and until memory is full.
"""

from __future__ import annotations

import json
import platform
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import bench_gpu
import device_checks
import numpy as np

import irees
from irees.backends.cuda.toolchain import nvrtc_version
from irees.errors import IreesError
from irees.target import Target

Facts = dict[str, Any]
PACKAGES = ("torch", "triton", "cupy-cuda13x", "cupy-cuda12x", "numpy", "xdsl")
SIDE = 512
PRODUCTS = 6
"""Of a chain, whose calls launch enough kernels to be recorded as a graph."""


def versions() -> Facts:
    """The device, the driver and the packages."""
    import cupy

    asked = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit"
    smi = subprocess.run(
        ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: Facts = {"nvidia-smi": smi.stdout.strip(), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    found["device"] = properties["name"].decode()
    for name in ("multiProcessorCount", "l2CacheSize", "clockRate", "memoryClockRate"):
        found[name] = properties.get(name)
    found["capability"] = cupy.cuda.Device().compute_capability
    found["driver"] = cupy.cuda.runtime.driverGetVersion()
    found["runtime"] = cupy.cuda.runtime.runtimeGetVersion()
    found["nvrtc"] = nvrtc_version()
    return found


def copy() -> Facts:
    """GB/s, read and written, of a copy."""
    import cupy

    return {"gigabytes": round(bench_gpu.copy_gigabytes(cupy), 1)}


def rows(
    target: Target, names: Sequence[str], seconds: float, peers: Sequence[str]
) -> dict[str, Callable[[], Facts]]:
    """The rows of bench_gpu.py: times beside PyTorch and CuPy."""
    wanted = names or (*bench_gpu.KERNELS, *bench_gpu.MODELS)
    return {name: partial(_row, name, target, seconds, peers) for name in wanted}


def _row(name: str, target: Target, seconds: float, peers: Sequence[str]) -> Facts:
    import cupy

    with tempfile.TemporaryDirectory() as folder:
        row = bench_gpu.timed(name, Path(folder), target, cupy, seconds, peers)
    facts = asdict(row)
    facts.pop("name")
    if "irees" in row.reasons or "program" in row.reasons:
        facts["wrong"] = json.dumps(row.reasons)
    return facts


# --- calls ---------------------------------------------------------------------------------------


def checks(target: Target) -> dict[str, Callable[[], Facts]]:
    """By name; each gives `wrong` where something is."""
    every = (graphs, changed_arrays, torch_streams, cupy_streams, threads, shared_sums, pressure)
    return {check.__name__: partial(check, target) for check in every}


def chain(target: Target) -> Any:
    """`PRODUCTS` products in a row, of whole numbers that are kept below 4."""
    kind = f"tensor<{SIDE}x{SIDE}xf32>"
    steps = "".join(
        f"""
  %p{n + 1} = linalg.matmul ins(%r{n}, %y : {kind}, {kind}) outs(%f : {kind}) -> {kind}
  %r{n + 1} = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]
  }} ins(%p{n + 1} : {kind}) outs(%e : {kind}) {{
  ^bb0(%a: f32, %o: f32):
    %q = arith.mulf %a, %quarter : f32
    %w = math.floor %q : f32
    %m = arith.mulf %w, %four : f32
    %d = arith.subf %a, %m : f32
    linalg.yield %d : f32
  }} -> {kind}"""
        for n in range(PRODUCTS)
    )
    text = f"""
func.func @main(%r0: {kind}, %y: {kind}) -> {kind} {{
  %z = arith.constant 0.0 : f32
  %four = arith.constant 4.0 : f32
  %quarter = arith.constant 0.25 : f32
  %e = tensor.empty() : {kind}
  %f = linalg.fill ins(%z : f32) outs(%e : {kind}) -> {kind}{steps}
  return %r{PRODUCTS} : {kind}
}}"""
    return irees.compile(text, target=target)


def product(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `chain` computes."""
    for _ in range(PRODUCTS):
        x = np.mod(x @ y, np.float32(4))
    return x


def whole(seed: int) -> np.ndarray[Any, Any]:
    """Small whole numbers, whose sums are exact."""
    return np.random.default_rng(seed).integers(-2, 3, (SIDE, SIDE)).astype(np.float32)


def wrong(found: Any, right: Any) -> Facts:
    """`wrong` where two arrays differ."""
    said = device_checks.difference(np.asarray(found), np.asarray(right), 0.0)
    return {"wrong": said} if said else {}


def graphs(target: Target) -> Facts:
    """Five calls with the same arrays: later ones launch a graph, earlier results stay."""
    import cupy

    program, x, y = chain(target), whole(0), whole(1)
    here = [cupy.asarray(v) for v in (x, y)]
    results = [program(*here) for _ in range(5)]
    facts: Facts = {"graphs": len(program.functions["main"]._graphs.graphs)}
    if not facts["graphs"]:
        facts["wrong"] = "no call was recorded"
    for result in results:
        facts |= wrong(result.get(), product(x, y))
    return facts


def changed_arrays(target: Target) -> Facts:
    """What lies in the arrays changes between replays."""
    import cupy

    program = chain(target)
    x, y = cupy.asarray(whole(0)), cupy.asarray(whole(1))
    for seed in range(6):
        x[...] = cupy.asarray(whole(seed))
        found = program(x, y).get()
        if facts := wrong(found, product(whole(seed), whole(1))):
            return facts
    return {}


def torch_streams(target: Target) -> Facts:
    """The arguments are made on a stream of PyTorch, behind work that takes long."""
    import torch

    program, y = chain(target), torch.from_numpy(whole(1)).cuda()
    busy = torch.zeros(8192, 8192, device="cuda")
    # The default stream of CuPy waits for streams that block; PyTorch's side streams do not.
    stream = torch.cuda.Stream()
    for seed in range(6):
        given = torch.from_numpy(whole(seed)).pin_memory()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for _ in range(4):
                busy @ busy
            x = given.to("cuda", non_blocking=True)
            result = program(x, y)
            found = (result + 0).cpu().numpy()
        if facts := wrong(found, product(whole(seed), whole(1))):
            return {"seed": seed} | facts
    return {}


def cupy_streams(target: Target) -> Facts:
    """The same on streams of CuPy, two in turns."""
    import cupy

    program, streams = chain(target), [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    busy = cupy.zeros((4096, 4096), cupy.float32)
    for seed in range(8):
        with streams[seed % 2] as stream:
            y = cupy.asarray(whole(1))
            busy @ busy
            x = cupy.asarray(whole(seed))
            found = program(x, y).get(stream=stream)
        if facts := wrong(found, product(whole(seed), whole(1))):
            return {"seed": seed} | facts
    return {}


def threads(target: Target) -> Facts:
    """Four threads make the first calls of one program at once, each on its own data."""
    import cupy

    program, problems = chain(target), []

    def calls(number: int) -> None:
        try:
            with cupy.cuda.Stream(non_blocking=True):
                for _ in range(10):
                    found = program(whole(number), whole(9))
                    problems.extend(wrong(found, product(whole(number), whole(9))).values())
        except Exception as error:
            problems.append(f"{type(error).__name__}: {str(error)[:300]}")

    workers = [threading.Thread(target=calls, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"wrong": problems[0], "count": len(problems)} if problems else {}


def shared_sums(target: Target) -> Facts:
    """Stream-K: the bits of a thousand calls are the same."""
    import cupy

    check = next(c for c in device_checks.products() if c.name == "Stream-K f32")
    program = check.compiled(target)
    arguments = [cupy.asarray(x) for x in check.arguments(program)]
    first = program(*arguments)
    different = sum(int((program(*arguments) != first).any()) for _ in range(1000))
    return {"wrong": f"{different} of 1000 calls differ"} if different else {}


def pressure(target: Target) -> Facts:
    """Memory is full: a typed error, and everything is as before afterwards."""
    import cupy

    program, x, y = chain(target), whole(0), whole(1)
    program(x, y)
    pool, held = cupy.get_default_memory_pool(), []
    for size in (1 << 32, 1 << 28, 1 << 24, 1 << 20, 1 << 16):
        while True:
            try:
                held.append(cupy.cuda.alloc(size))
            except cupy.cuda.memory.OutOfMemoryError:
                break
    try:
        program(x, y)
        said = "no error"
    except IreesError as error:
        said = type(error).__name__
    held.clear()
    pool.free_all_blocks()
    facts: Facts = {"said": said} | wrong(program(x, y), product(x, y))
    if said != "OutOfMemoryError":
        facts["wrong"] = f"{said}, not OutOfMemoryError"
    return facts
