"""
Compiles CUDA C++ texts to cubins with NVRTC.

NVRTC is a library that needs neither a GPU nor a driver. It is called through ctypes with the
text in memory, without files. Cubins and their resource usage as reported by ptxas (registers,
shared memory, spills) are cached by content, like objects of the C compiler.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from irees.errors import ToolchainError
from irees.runtime.cache import Cache, default_cache, key_of
from irees.target import Target, default_threads

FORMAT = "irees-cubin-1"
LOG_LINES = 20
_NAMES = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12")
_OPTIONS = ("--std=c++17", "--ptxas-options=-v", "--device-as-default-execution-space")
_CACHES_SINCE = (12, 9)
"""The first NVRTC version that caches cubins itself; see `options_of`."""
_DEMOTED = re.compile(
    r"ptxas info\s*: (?:Compiling entry function|Function properties for) '?(\w+)"
)


@dataclass(frozen=True)
class Resources:
    """Resource usage of one kernel: registers per thread, and memory in bytes."""

    registers: int
    shared_bytes: int
    spilled_bytes: int
    stack_bytes: int


@dataclass(frozen=True)
class Cubin:
    """Machine code of one text for one architecture, and the resource usage of its kernels."""

    image: bytes
    resources: dict[str, Resources]


@cache
def find_nvrtc() -> ctypes.CDLL:
    """
    Loads NVRTC from the `nvidia-cuda-nvrtc-cu12` or -cu13 wheel, or from the system.

    Raises ToolchainError when there is none.
    """
    for candidate in (*_wheels(), *_NAMES):
        try:
            _load_builtins(Path(candidate))
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise ToolchainError(
        "NVRTC is missing; it compiles CUDA kernels",
        hint="`pip install nvidia-cuda-nvrtc-cu12`",
    )


def _load_builtins(nvrtc: Path) -> None:
    """
    Preloads libnvrtc-builtins from the folder of an NVRTC given by absolute path.

    NVRTC opens it by its bare name, and the library of the CUDA 13.0 wheel has no RUNPATH, so
    every compilation would fail. dlopen finds a loaded library by its bare name.
    """
    if nvrtc.is_absolute():
        for builtins in sorted(nvrtc.parent.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(builtins))


def _wheels() -> Iterator[str]:
    for package in ("nvidia.cuda_nvrtc", "nvidia.cu13"):
        try:
            spec = find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder, "lib").glob("libnvrtc.so*")):
                if "builtins" not in path.name and "alt" not in path.name:
                    yield str(path)


def options_of(arch: str, fp: str) -> tuple[str, ...]:
    """
    Returns the options for NVRTC.

    If there is a driver, newer versions cache cubins by their PTX. On a hit, ptxas does not run and
    reports no resource usage. So that cache is disabled; irees caches by the text of the kernel.
    """
    options = [f"-arch={arch}", *_OPTIONS, f"--fmad={'false' if fp == 'strict' else 'true'}"]
    if tuple(map(int, nvrtc_version().split("."))) >= _CACHES_SINCE:
        options.append("--no-cache")
    return tuple(options)


@cache
def nvrtc_version() -> str:
    """The version of NVRTC. Raises ToolchainError."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    find_nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_cubin(
    text: str, arch: str, *, fp: str = "default", store: Cache | None = None
) -> Cubin:
    """
    Compiles a text for an architecture (`sm_80`), or returns the cubin from the cache.

    Raises ToolchainError.
    """
    store = store or default_cache()
    options = options_of(arch, fp)
    key = key_of(FORMAT, nvrtc_version(), *options, text)
    if (entry := store.get(key)) is not None:
        end = 8 + int.from_bytes(entry[:8], "little")
        resources = {n: Resources(**r) for n, r in json.loads(bytes(entry[8:end])).items()}
        return Cubin(bytes(entry[end:]), resources)
    image, log = _run_nvrtc(text, options)
    made = Cubin(image, parse_resources(log))
    if not made.resources:
        raise ToolchainError(
            f"NVRTC {nvrtc_version()} did not report the resource usage of a kernel",
            hint="set CUDA_CACHE_DISABLE=1, or use another version of NVRTC",
        )
    header = json.dumps({n: asdict(r) for n, r in made.resources.items()}).encode()
    store.put(key, len(header).to_bytes(8, "little") + header + image)
    return made


def _run_nvrtc(text: str, options: Sequence[str]) -> tuple[bytes, str]:
    nvrtc = find_nvrtc()
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"irees.cu", 0, None, None)
    try:
        arguments = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        status = nvrtc.nvrtcCompileProgram(program, len(options), arguments)
        log = _buffer(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        if status:
            lines = [x for x in log.decode(errors="replace").splitlines() if x.strip("\0 ")]
            wrong = [x for x in lines if "error" in x] or lines
            raise ToolchainError("\n".join(("NVRTC rejected a kernel", *wrong[:LOG_LINES])))
        image = _buffer(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return image, log.decode(errors="replace")


def _buffer(size_of, read, program) -> bytes:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    memory = ctypes.create_string_buffer(size.value)
    read(program, memory)
    return memory.raw


def parse_resources(log: str) -> dict[str, Resources]:
    """Parses the resource usage of each kernel from the output of `ptxas -v`."""
    found: dict[str, Resources] = {}
    name, stack, spilled = "", 0, 0
    for line in log.splitlines():
        if (match := _DEMOTED.search(line)) is not None:
            name = match[1]
        elif "bytes stack frame" in line:
            stack, stores, loads = map(int, re.findall(r"(\d+) bytes", line))
            spilled = stores + loads
        elif (match := re.search(r"Used (\d+) registers", line)) is not None:
            shared = re.search(r"(\d+) bytes smem", line)
            size = int(shared[1]) if shared else 0
            found[name] = Resources(int(match[1]), size, spilled, stack)
    return found


def arch_of(text: str, arch: str) -> str:
    """The architecture for NVRTC: `sm_90a` if the text uses warpgroup ops, else `arch`."""
    return f"{arch}a" if arch == "sm_90" and "#define IREES_WARPGROUPS\n" in text else arch


def compile_cubins(
    texts: Mapping[str, str], target: Target, fp: str, store: Cache | None = None
) -> dict[str, Cubin]:
    """Compiles all kernel texts in parallel; returns cubins by name. Raises ToolchainError."""
    find_nvrtc()
    with ThreadPoolExecutor(max(1, min(default_threads(), len(texts)))) as pool:
        jobs = {
            name: pool.submit(compile_cubin, text, arch_of(text, target.arch), fp=fp, store=store)
            for name, text in texts.items()
        }
        return {name: job.result() for name, job in jobs.items()}


def host_and_kernels(texts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Splits the texts of a program into C texts of the host and kernel texts."""
    host = {name: text for name, text in texts.items() if name == "host"}
    return host, {name: text for name, text in texts.items() if name != "host"}
