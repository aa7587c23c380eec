"""
Facts about the machine that a program is compiled for.

Strategies read the numbers of a `Target`, the toolchain reads its flags, and a saved program is
checked against its `features` before it is loaded. Passes read the facts from an attribute in the
IR, never from this class.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from irees.accelerators import accelerator
from irees.errors import ArgumentError, DeviceError
from irees.fence import fenced
from irees.plugins import offered

X86_LEVELS = {
    "x86-64-v2": ("sse4_2", "popcnt", "ssse3"),
    "x86-64-v3": ("sse4_2", "popcnt", "ssse3", "avx", "avx2", "fma", "bmi1", "bmi2", "f16c"),
    "x86-64-v4": (
        *("sse4_2", "popcnt", "ssse3", "avx", "avx2", "fma", "bmi1", "bmi2", "f16c"),
        *("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    ),
}

MOST_ELEMENTS = 1 << 47
"""Exclusive limit of each dim of an argument, even of an empty one: more than any memory holds.
Proofs that sums of sizes do not wrap rely on it."""

MOST_TOGETHER = 1 << 60
"""Exclusive limit of the product of an argument's nonzero sizes, for the same reasons."""

DOT_PRODUCTS = {"avx512_bf16": "bf16", "avx512_vnni": "i8", "avx_vnni": "i8"}
"""Feature name of a dot-product instruction => element type of its narrow operands."""

# The flags of /proc/cpuinfo that name instruction sets.
_INSTRUCTION_WORD = re.compile(
    r"(sse\w*|ssse3|avx\w*|fma4?|bmi\d|f16c|popcnt|abm|movbe|adx|aes|vaes|sha\w*|gfni|amx_\w+|xop"
    r"|v?pclmulqdq|asimd\w*|sve\w*|atomics|bf16|i8mm|fphp|dotprod)"
)


@dataclass(frozen=True)
class GpuFacts:
    """
    Facts about one GPU architecture. Sizes are in bytes.

    A block has `shared_bytes` of shared memory, or opts in to `shared_opt_in_bytes`. `matrix_kinds`
    are the element types of its warp-level matrix instructions, `warpgroup_kinds` those of `wgmma`.
    `asynchronous_copies` says whether it has asynchronous copies to shared memory. Source: CUDA
    C++ Programming Guide, "Compute Capabilities"; multiprocessors and the L2 cache are those of a
    typical card. `launch_bytes` estimates the bytes that a workgroup moves in the time of a kernel
    launch: 1 to 2 us at its share of the memory bandwidth, 20 to 35 GB/s. `native_math`
    are the ops on f32 that stay calls of CUDA's library instead of the polynomials of
    `expand-math`, within 4 units of the last place (CUDA C++ Programming Guide, "Mathematical
    Functions"); of two zeros a maximum is either.
    """

    shared_opt_in_bytes: int
    multiprocessors: int
    threads_per_multiprocessor: int
    matrix_kinds: tuple[str, ...]
    asynchronous_copies: bool
    l2_bytes: int
    warpgroup_kinds: tuple[str, ...] = ()
    shared_bytes: int = 48 << 10
    registers: int = 65536
    registers_per_thread: int = 255
    threads_per_block: int = 1024
    native_math: tuple[str, ...] = (
        *("math.exp", "math.exp2", "math.expm1", "math.log", "math.log2", "math.log10"),
        *("math.log1p", "math.tanh", "math.sinh", "math.cosh", "math.erf", "math.rsqrt"),
        *("math.sin", "math.cos", "math.tan", "math.asin", "math.acos", "math.atan", "math.atan2"),
        *("arith.maxnumf", "arith.minnumf"),
    )
    launch_bytes: int = 32 << 10
    warp: int = 32

    @property
    def matrix_shared_bytes(self) -> int:
        """Shared memory of a workgroup with matrix instructions: two fit on a multiprocessor."""
        return max(self.shared_bytes, self.shared_opt_in_bytes // 2)


_KINDS_80 = ("f16", "bf16", "tf32", "i8")
GPUS: dict[str, GpuFacts] = {
    "sm_75": GpuFacts(64 << 10, 40, 1024, ("f16", "i8"), False, 4 << 20),
    "sm_80": GpuFacts(163 << 10, 108, 2048, _KINDS_80, True, 40 << 20),
    "sm_86": GpuFacts(99 << 10, 84, 1536, _KINDS_80, True, 6 << 20),
    "sm_89": GpuFacts(99 << 10, 128, 1536, _KINDS_80, True, 48 << 20),
    "sm_90": GpuFacts(227 << 10, 132, 2048, _KINDS_80, True, 50 << 20, ("f16", "bf16")),
    # These have no `wgmma`, but `tcgen05` or no warpgroup instructions.
    "sm_100": GpuFacts(227 << 10, 148, 2048, _KINDS_80, True, 126 << 20),
    "sm_120": GpuFacts(99 << 10, 170, 1536, _KINDS_80, True, 96 << 20),
}
DEFAULT_GPU = "sm_80"
"""Default architecture of `cuda-emulated`."""


@dataclass(frozen=True)
class Target:
    """
    The facts about one machine. `Target.parse("cpu")` is the machine that irees runs on,
    `Target("cuda", arch="sm_90")` a GPU, whether there is one or not.

    Sizes are in bytes; `l1_bytes` and `l2_bytes` are per core. `stack_bytes` is the stack limit of
    a workgroup. `gpu` has the facts of a GPU, and is None for a CPU.
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
    gpu: GpuFacts | None = None
    accelerator: str = ""
    """Name of the plug-in target that extends this CPU (`irees.accelerators`), or empty."""

    def __post_init__(self):
        if self.kind not in ("cuda", "cuda-emulated") or self.gpu is not None:
            return
        arch = self.arch
        if arch == "native":
            arch = DEFAULT_GPU if self.kind == "cuda-emulated" else device_arch()
        if arch not in GPUS:
            raise ArgumentError(f"arch {arch!r} is unknown", hint=f"use one of {', '.join(GPUS)}")
        facts = {"arch": arch, "gpu": GPUS[arch], "machine": host_machine()}
        for name, value in (facts | {"threads": default_threads()}).items():
            object.__setattr__(self, name, value)

    @staticmethod
    @fenced
    def parse(spec: str | Target) -> Target:
        """
        Returns the target that a string names: `cpu`, `cpu:generic`, `cpu:x86-64-v3`, `cuda`,
        `cuda:sm_80`, `cuda-emulated`, `cuda-emulated:sm_80`, ..., or one of a plug-in.

        Raises ArgumentError for an unknown name, DeviceError for `cuda` without an architecture on
        a machine without a GPU.
        """
        if isinstance(spec, Target):
            return spec
        kind, _, arch = spec.partition(":")
        if kind in ("cuda", "cuda-emulated"):
            return Target(kind, arch or "native")
        if kind == "cpu":
            return cpu_target(arch or "native")
        if (found := accelerator(kind)) is not None:
            return found.target(kind, cpu_target(arch or "native"))
        plugged = ", ".join(offered("targets"))
        hint = "use cpu, cpu:<arch>, cuda, cuda:<arch>, cuda-emulated"
        hint = f"{hint}, {plugged}" if plugged else hint
        raise ArgumentError(f"target {spec!r} is unknown", hint=hint)

    @property
    def c_flags(self) -> tuple[str, ...]:
        """The flags of gcc and clang that select the instruction set."""
        if self.arch == "generic" or self.gpu is not None:
            return ()
        # On ARM `-march=native` leaves the tuning generic; `-mcpu` sets both.
        option = "-mcpu" if self.machine == "aarch64" else "-march"
        return (f"{option}={self.arch}",)

    @property
    def uncached_bytes(self) -> int:
        """Minimum size of a buffer that counts as uncached: half of the last-level cache."""
        return self.l3_bytes // 2

    @property
    def looks_up_lanes(self) -> bool:
        """Whether one instruction looks up lanes in a vector of 16 floats (AVX-512: vpermps)."""
        return self.vector_bytes >= 64

    @property
    def tested_lanes(self) -> tuple[int, ...]:
        """The lane counts of masks of 32-bit lanes that one instruction moves to a scalar."""
        if self.gpu is not None or self.machine != "x86_64":
            return ()
        features = {"avx": 8, "avx512dq": 16}
        return (4, *(count for word, count in features.items() if word in self.features))

    @property
    def casts_wide_integers(self) -> bool:
        """Whether one instruction casts a vector of floats to integers of 64 bits (AVX-512 DQ)."""
        return self.gpu is None and "avx512dq" in self.features

    @property
    def fuses_multiply_adds(self) -> bool:
        """Whether a CPU has fused multiply-adds; on others they are calls of libm."""
        return self.machine == "aarch64" or "fma" in self.features

    @property
    def dot_products(self) -> tuple[str, ...]:
        """The features that are dot-product instructions."""
        return tuple(word for word in self.features if word in DOT_PRODUCTS)

    @property
    def integer_dot_products(self) -> tuple[str, ...]:
        """The dot-product instructions on integers, whose results are exact."""
        return tuple(word for word in self.dot_products if DOT_PRODUCTS[word] == "i8")

    def missing_features(self) -> tuple[str, ...]:
        """Returns the instruction sets that this target needs and the current machine lacks."""
        if self.machine not in ("", host_machine()):
            return (self.machine,)
        have = host_features()
        return tuple(word for word in self.features if word not in have)


def device_arch() -> str:
    """
    Returns the architecture in `GPUS` for this machine's first GPU: its own, or the nearest earlier
    one of the same generation.

    Raises DeviceError without a GPU or CuPy, or if irees does not support its generation.
    """
    hint = "name an architecture (cuda:sm_80) to compile, or use cuda-emulated to run"
    try:
        import cupy  # pyright: ignore

        number = int(cupy.cuda.Device(0).compute_capability)
    except ImportError:
        raise DeviceError(
            "target cuda queries the GPU, which needs cupy; it is not installed",
            hint=f"`pip install irees[cuda12]`; {hint}",
        ) from None
    except Exception as error:
        raise DeviceError(f"there is no NVIDIA GPU: {error}", hint=hint) from None
    # Machine code runs on GPUs of the same generation that are not older than its architecture.
    known = [name for name in GPUS if int(name[3:-1]) == number // 10 and int(name[3:]) <= number]
    if not known:
        raise DeviceError(
            f"the GPU is an sm_{number}, but irees supports only {', '.join(GPUS)} and GPUs that "
            "run their machine code",
            hint="use one of these GPUs, or target=cuda-emulated",
        )
    return max(known, key=lambda name: int(name[3:]))


@cache
def cpu_target(arch: str = "native") -> Target:
    """
    Returns the CPU target of that architecture, with the caches and the threads of this machine.

    Raises ArgumentError if the name is not an architecture of this machine's family.
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
    """Returns the instruction sets of this machine by their Linux names; empty if unknown."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        # macOS has no /proc/cpuinfo. Every Mac with an Intel processor of this decade has AVX2.
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
