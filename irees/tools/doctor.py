"""`irees doctor`: prints one line per requirement, with a hint if it fails."""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from irees.errors import IreesError
from irees.plugins import Installed, installed
from irees.runtime.cache import Cache, default_cache
from irees.runtime.services import load_services
from irees.target import DEFAULT_GPU, cpu_target, device_arch

EXTRAS = ("torch", "torch_mlir", "cupy", "rich", "z3", "ziglang", "lit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command has no flags."""


def run(arguments: argparse.Namespace) -> int:
    """Prints the lines; returns the exit code of the first failed check, else 0."""
    status = 0
    for name, check in _CHECKS.items():
        try:
            print(f"ok    {name}: {check()}")
        except IreesError as error:
            print(f"FAIL  {name}: {error}")
            status = status or error.exit_code
    for name, check in _FOR_GPUS.items():
        try:
            print(f"ok    {name}: {check()}")
        except IreesError as error:
            print(f"note  {name}: {error}")
    for each in installed():
        print(f"note  plug-in {each.name}: {_plugin(each)}")
    missing = [name for name in EXTRAS if find_spec(name) is None]
    print(f"note  extras that are not installed: {', '.join(missing) or 'none'}")
    return status


def _plugin(each: Installed) -> str:
    """Returns the contributions of a plug-in, or why it was not loaded."""
    if each.plugin is None:
        return each.problem or ""
    tables = ("dialects", "passes", "interfaces", "inserts", "targets", "strategies")
    rows = {table: getattr(each.plugin, table) for table in tables}
    parts = [f"{table} {', '.join(row)}" for table, row in rows.items() if row]
    head = " ".join((each.plugin.version, f"({each.home})")).strip()
    return "; ".join((head, *parts))


def _versions() -> str:
    found = [f"Python {platform.python_version()}", platform.platform()]
    for name in ("irees", "xdsl", "numpy", "ml_dtypes"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} (not installed)")
    return ", ".join(found)


def _processor() -> str:
    target = cpu_target()
    return (
        f"{target.machine}, vectors of {target.vector_bytes} bytes, caches of "
        f"{target.l1_bytes >> 10} / {target.l2_bytes >> 10} / {target.l3_bytes >> 10} KiB, "
        f"{target.threads} threads"
    )


def _compiler() -> str:
    from irees.backends.common.toolchain import compile_library, find_compiler

    compiler = find_compiler()
    begin = time.perf_counter()
    # Bypasses the cache, to test whether the compiler works now.
    compile_library(
        {"doctor": "int doctor(void) { return 1; }"},
        store=_NoCache(default_cache().root),
    )
    return f"{compiler.version} (a small library in {time.perf_counter() - begin:.2f} s)"


def _runtime() -> str:
    from irees.backends.common.toolchain import runtime_library

    return f"loaded, {load_services(runtime_library()).threads()} threads"


def _cache() -> str:
    stats = default_cache().stats()
    return f"{stats['folder']}, {stats['entries']} entries, {stats['bytes']} bytes"


def _cxx_compiler() -> str:
    from irees.backends.common.toolchain import CXX, find_compiler

    return f"{find_compiler(CXX).version} (for target=cuda-emulated)"


def _nvrtc() -> str:
    from irees.backends.cuda.toolchain import compile_cubin, nvrtc_version

    text = 'extern "C" __global__ void doctor(float *p) { *p = 1.0f; }'
    compile_cubin(text, DEFAULT_GPU, store=_NoCache(default_cache().root))
    return f"{nvrtc_version()} (for target=cuda)"


class _NoCache(Cache):
    def get(self, key: str) -> memoryview | None:
        return None

    def put(self, key: str, content: bytes) -> bool:
        return False


_FOR_GPUS: dict[str, Callable[[], str]] = {
    "C++ compiler": _cxx_compiler,
    "NVRTC": _nvrtc,
    "GPU": device_arch,
}
"""Checks that only programs for GPUs need: a missing part is not a failure."""

_CHECKS: dict[str, Callable[[], str]] = {
    "versions": _versions,
    "processor": _processor,
    "C compiler": _compiler,
    "runtime": _runtime,
    "cache": _cache,
}
