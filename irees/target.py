"""
What irees knows of the machine that a program is compiled for.

A `Target` is a bag of facts: strategies read the numbers, the toolchain reads the flags, and a
saved program is checked against `features` before it is loaded. Passes see the facts as an
attribute in the IR, never this class.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from irees.errors import ArgumentError, UnsupportedError

X86_LEVELS = {
    "x86-64-v2": ("sse4_2", "popcnt", "ssse3"),
    "x86-64-v3": ("sse4_2", "popcnt", "ssse3", "avx", "avx2", "fma", "bmi1", "bmi2", "f16c"),
    "x86-64-v4": (
        *("sse4_2", "popcnt", "ssse3", "avx", "avx2", "fma", "bmi1", "bmi2", "f16c"),
        *("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    ),
}

DOT_PRODUCTS = {"avx512_bf16": "bf16", "avx512_vnni": "i8", "avx_vnni": "i8"}
"""Words for instructions that multiply narrow elements and add up neighbours, and the elements."""

# The words of /proc/cpuinfo that say which instructions a compiler may use.
_INSTRUCTION_WORD = re.compile(
    r"(sse\w*|ssse3|avx\w*|fma4?|bmi\d|f16c|popcnt|abm|movbe|adx|aes|vaes|sha\w*|gfni|amx_\w+|xop"
    r"|v?pclmulqdq|asimd\w*|sve\w*|atomics|bf16|i8mm|fphp|dotprod)"
)


@dataclass(frozen=True)
class Target:
    """
    The facts about one machine. `Target.parse("cpu")` is the machine that irees runs on.

    Sizes are in bytes; `l1_bytes` and `l2_bytes` belong to one core. `stack_bytes` is what
    one workgroup may keep on its stack.
    """

    kind: str = "cpu"
    arch: str = "native"
    machine: str = "x86_64"
    features: tuple[str, ...] = ()
    vector_bytes: int = 16
    vector_registers: int = 16
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 8 << 20
    stack_bytes: int = 32 << 10
    threads: int = 1

    @staticmethod
    def parse(spec: str | Target) -> Target:
        """
        The target that a string names: `cpu`, `cpu:generic`, `cpu:x86-64-v3`, ...

        Raises ArgumentError for a name that is not one, UnsupportedError for a target that
        this machine or this version cannot compile for.
        """
        if isinstance(spec, Target):
            return spec
        kind, _, arch = spec.partition(":")
        if kind == "cuda":
            raise UnsupportedError("the target cuda is not available", hint="use target=cpu")
        if kind != "cpu":
            raise ArgumentError(f"target {spec!r} is unknown", hint="use cpu or cpu:<arch>")
        return cpu_target(arch or "native")

    @property
    def c_flags(self) -> tuple[str, ...]:
        """The flags that choose the instruction set, for gcc and clang."""
        if self.arch == "generic":
            return ()
        # On ARM `-march=native` leaves the tuning generic; `-mcpu` sets both.
        option = "-mcpu" if self.machine == "aarch64" else "-march"
        return (f"{option}={self.arch}",)

    @property
    def dot_products(self) -> tuple[str, ...]:
        """The features that multiply narrow elements and add up neighbours."""
        return tuple(word for word in self.features if word in DOT_PRODUCTS)

    @property
    def integer_dot_products(self) -> tuple[str, ...]:
        """Those of them whose results are exact."""
        return tuple(word for word in self.dot_products if DOT_PRODUCTS[word] == "i8")

    def missing_features(self) -> tuple[str, ...]:
        """The instruction sets that this target needs and the present machine lacks."""
        if self.machine not in ("", host_machine()):
            return (self.machine,)
        have = host_features()
        return tuple(word for word in self.features if word not in have)


@cache
def cpu_target(arch: str = "native") -> Target:
    """
    The CPU target of that architecture, with the caches and the threads of this machine.

    Raises ArgumentError when the name is not an architecture of this machine's family.
    """
    machine = host_machine()
    if arch in ("native", "generic"):
        features = tuple(sorted(host_features())) if arch == "native" else ()
    elif machine == "x86_64" and arch in X86_LEVELS:
        features = X86_LEVELS[arch]
    else:
        known = ", ".join(("native", "generic", *(X86_LEVELS if machine == "x86_64" else ())))
        raise ArgumentError(f"arch {arch!r} is unknown on {machine}", hint=f"use one of {known}")
    wide = machine == "aarch64" or "avx512f" in features
    l1, l2, l3 = cache_sizes()
    return Target(
        arch=arch,
        machine=machine,
        features=features,
        vector_bytes=64 if "avx512f" in features else 32 if "avx2" in features else 16,
        vector_registers=32 if wide else 16,
        l1_bytes=l1,
        l2_bytes=l2,
        l3_bytes=l3,
        threads=default_threads(),
    )


@cache
def host_machine() -> str:
    """The family of this machine's processor: `x86_64`, `aarch64`, ..."""
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name := platform.machine().lower(), name)


@cache
def host_features() -> frozenset[str]:
    """The instruction sets of this machine, in the words of Linux; empty when not known."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        # macOS has no such file. Every Mac with an Intel processor of this decade has AVX2.
        return frozenset(X86_LEVELS["x86-64-v2"] if host_machine() == "x86_64" else ())
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    words = line.group(1).split() if line else ()
    return frozenset(word for word in words if _INSTRUCTION_WORD.fullmatch(word))


@cache
def cache_sizes() -> tuple[int, int, int]:
    """The sizes of the L1 data, L2 and L3 caches that one core sees, in bytes."""
    sizes = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, level, size = (
                (index / name).read_text().strip() for name in ("type", "level", "size")
            )
            if kind != "Instruction":
                unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(size[-1])
                sizes[int(level)] = int(size[:-1]) * unit if unit else int(size)
        except (OSError, ValueError):
            continue
    return sizes[1], sizes[2], sizes[3]


def default_threads() -> int:
    """
    The number of threads to use: `IREES_NUM_THREADS`, or the cores that this process may use.

    Raises ArgumentError when the variable is not a positive number.
    """
    if text := os.environ.get("IREES_NUM_THREADS"):
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1024:
            raise ArgumentError(f"IREES_NUM_THREADS is {text!r}, but must be from 1 to 1024")
        return int(text)
    return available_cores()


def available_cores() -> int:
    """The cores that this process may use: its affinity and the quota of its control group."""
    cores = _affinity()
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(cores, -(-int(quota) // int(period))))
    except (OSError, ValueError, ZeroDivisionError):
        return cores


def _affinity() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1
