"""
The cache of whole programs: recompiling the same text only reads the cache.

The key contains the text, its weights, the options, the target and the version of the compiler, so
a hit is always correct. An entry holds the library, the manifest, the C texts and the constants
that the compiler computed; unchanged weights are taken from the source. Constants are stored
aligned, so kernels read them without a copy. Two kinds of programs are not stored: those whose own
constants exceed MAX_BYTES, and those compiled without a failed pass, which may succeed the next
time. Entries are data: JSON, then bytes, verified by the cache.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from irees.backends.common.toolchain import CXX, find_compiler, runtime_library
from irees.backends.cuda.toolchain import nvrtc_version
from irees.blobs import Blob, release_pages
from irees.frontends.mlir.sections import Source
from irees.options import Options
from irees.plugins import active
from irees.runtime.alignment import CACHE_LINE, aligned_rooms
from irees.runtime.cache import default_cache, digest_of, key_of
from irees.runtime.dtypes import numpy_dtype
from irees.runtime.program import Code, Program
from irees.runtime.services import Services
from irees.target import Target

MAX_BYTES = 1 << 30
MAPPED_BYTES = 64 << 20
"""Bytes of weights to hash before the mapped pages of the file are released."""
PACKAGES = ("xdsl", "numpy", "ml_dtypes")
"""Packages that affect compiled programs: IR from xDSL, constants computed with numpy."""


@dataclass
class Built:
    """The output of a compilation: everything needed to create the program."""

    library: bytes
    manifest: dict[str, Any]
    texts: dict[str, str]
    constants: dict[str, np.ndarray[Any, Any]]
    from_source: dict[str, str]
    """Name of a constant that is an unchanged resource => resource key."""
    cubins: dict[str, bytes] = field(default_factory=dict)
    """Name of a kernel text => its cubin, for a GPU."""
    failed_passes: frozenset[str] = frozenset()
    altered: bool = False
    """Whether it depends on something outside of the key: see `irees.build.is_altered`."""


@cache
def compiler_version() -> str:
    """A hash of the irees sources, and of the versions of Python and PACKAGES."""
    digest = hashlib.sha256(platform.python_version().encode())
    for package in PACKAGES:
        digest.update(f"{package} {version(package)}\n".encode())
    root = Path(__file__).parent
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".h", ".c", ".cpp"):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def program_key(source: Source, options: Options, *targets: Target) -> str:
    """The cache key of a program: text, weights, options, targets of its parts, compilers."""
    described = (f"{name} {len(source.blobs[name].raw())}" for name in sorted(source.blobs))
    identities = (each for target in targets for each in compiler_identities(target))
    return key_of(
        "program", source.text, *described, *weight_digests(source), source.name,
        repr(replace(options, target="", limits=None)),
        repr(targets), compiler_version(), *identities,
        *(each.identity for each in active(options.plugins)),
    )  # fmt: skip


def weight_digests(source: Source) -> Iterator[bytes]:
    """Digests of the weights of a source, in groups that each map a part of the file at a time."""
    group: list[memoryview] = []
    size = 0
    for name in sorted(source.blobs):
        raw = memoryview(source.blobs[name].raw()).cast("B")
        for start in range(0, raw.nbytes, MAPPED_BYTES):
            group.append(raw[start : start + MAPPED_BYTES])
            size += group[-1].nbytes
            if size >= MAPPED_BYTES:
                yield digest_of(*group)
                release_pages(group[-1])
                group, size = [], 0
    if group:
        yield digest_of(*group)
        release_pages(group[-1])


def compiler_identities(target: Target) -> tuple[str, ...]:
    """Cache-key identities of the compilers for a target. Raises ToolchainError."""
    host = find_compiler().identity
    if target.kind == "cuda-emulated":
        return (host, find_compiler(CXX).identity)
    return (host, nvrtc_version()) if target.kind == "cuda" else (host,)


def may_store(built: Built) -> bool:
    """
    Whether a program is determined by its key (no pass failed, and it is not altered) and its own
    constants are small enough.
    """
    return not built.failed_passes and not built.altered and _own_bytes(built) <= MAX_BYTES


def _own(built: Built) -> dict[str, np.ndarray[Any, Any]]:
    return {n: a for n, a in built.constants.items() if n not in built.from_source}


def _own_bytes(built: Built) -> int:
    return sum(a.nbytes for a in _own(built).values())


def store(key: str, built: Built) -> None:
    """Stores a program, if `may_store` allows it; its constants, which are large, in background."""
    if not may_store(built):
        return
    own = _own(built)
    described = {
        name: [str(a.dtype), list(a.shape), built.from_source.get(name)]
        for name, a in built.constants.items()
    }
    header = json.dumps(
        {
            "manifest": built.manifest,
            "texts": built.texts,
            "library": len(built.library),
            "cubins": {name: len(image) for name, image in built.cubins.items()},
            "constants": described,
        }
    ).encode()
    head = (len(header).to_bytes(8, "little"), header, built.library, *built.cubins.values())
    parts: list[bytes | memoryview] = [*head, _gap(sum(map(len, head)))]
    for array in own.values():
        parts += [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, _gap(array.nbytes)]
    default_cache().put_later(key, *parts)


def _gap(size: int) -> bytes:
    """Padding from `size` bytes to the next cache line."""
    return bytes(-size % CACHE_LINE)


def find(key: str, blobs: Mapping[str, Blob]) -> Built | None:
    """Reads the program of a key, with unchanged weights from the source; None on a miss."""
    entry = default_cache().get(key)
    if entry is None:
        return None
    end = 8 + int.from_bytes(entry[:8], "little")
    header = json.loads(bytes(entry[8:end]))
    library = bytes(entry[end : end + header["library"]])
    at = end + header["library"]
    cubins: dict[str, bytes] = {}
    for name, size in header["cubins"].items():
        cubins[name] = bytes(entry[at : at + size])
        at += size
    constants: dict[str, np.ndarray[Any, Any]] = {}
    described = header["constants"].items()
    from_source = {name: origin for name, (_, _, origin) in described if origin is not None}
    rooms = iter(aligned_rooms([blobs[origin].size for origin in from_source.values()]))
    for name, (dtype, shape, origin) in described:
        kind = np.dtype(_named(dtype))
        if origin is not None:
            room = next(rooms)
            blobs[origin].fill(room)
            data = room.view(kind)
        else:
            at += -at % CACHE_LINE
            count = int(np.prod(shape, dtype=np.int64))
            data = np.frombuffer(entry, kind, count, at)
            at += data.nbytes
        constants[name] = data.reshape(shape)
    return Built(library, header["manifest"], header["texts"], constants, from_source, cubins)


def _named(dtype: str) -> Any:
    return numpy_dtype("bf16") if dtype == "bfloat16" else dtype


def store_parts(key: str, schedule: Mapping[str, Any], parts: Mapping[str, Built]) -> None:
    """Stores a multi-device program: each part, and last the schedule."""
    for name, built in parts.items():
        store(key_of("part", key, name), built)
    record = {"schedule": schedule, "parts": list(parts)}
    default_cache().put(key, json.dumps(record).encode())


def find_parts(
    key: str, blobs: Mapping[str, Blob]
) -> tuple[dict[str, Any], dict[str, Built]] | None:
    """Reads the schedule and parts of a key; None unless all of them are found."""
    entry = default_cache().get(key)
    if entry is None:
        return None
    record = json.loads(bytes(entry))
    found = {name: find(key_of("part", key, name), blobs) for name in record["parts"]}
    parts = {name: built for name, built in found.items() if built is not None}
    return (record["schedule"], parts) if len(parts) == len(found) else None


def program_of(built: Built, services: Services | None = None) -> Program:
    """Creates the callable program, on the services of a device or of the process."""
    code = Code(built.library, runtime_library(), built.texts, built.cubins)
    return Program(code, built.manifest, built.constants, services=services)
