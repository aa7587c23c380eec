"""
Saved programs: one `.irees` file that runs on any machine of the same family, without the irees
compiler and without a C compiler.

The file is an uncompressed zip: `manifest.json`, `program.so`, `runtime.so`, `constants.bin` (each
constant aligned to 64 bytes) and `sources/*.c` for inspection. A program for a GPU also has
`cubins/<arch>/*.cubin`, and its kernels in `sources/*.cu`. A multi-device program has
`schedule.json` instead, and a saved program per device in `devices/*.irees`. `SHA256SUMS` has the
hash of each member, and all are checked before a library is loaded. The hashes detect damage, not
malice: a saved program is machine code, and only as trustworthy as its source.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import ArgumentError, ParseError
from irees.fence import fenced
from irees.runtime.alignment import CACHE_LINE, aligned_room
from irees.runtime.device_program import DeviceProgram
from irees.runtime.files import path_of, write_whole
from irees.runtime.program import Code, Program
from irees.runtime.services import Services
from irees.runtime.signature import STATE

FORMAT = 1
MAX_MANIFEST_BYTES = 64 << 20
_SUMS = "SHA256SUMS"
_SCHEDULE = "schedule.json"
_PADDING_TAG = 0xD935  # the extra field of Android's zipalign
_LOCAL_HEADER, _ZIP64_EXTRA = 30, 20


@fenced
def save(program: Program, path: str | Path) -> None:
    """
    Writes a program to a file atomically.

    Raises ArgumentError when it cannot be written.
    """
    _write(path, _members_of(program))


@fenced
def save_devices(program: DeviceProgram, path: str | Path) -> None:
    """
    Writes a multi-device program to a file atomically.

    Raises ArgumentError when it cannot be written, or a part is interpreted.
    """
    record = {"format": FORMAT, **program.record}
    members: dict[str, Any] = {_SCHEDULE: json.dumps(record, indent=1, sort_keys=True).encode()}
    for name, part in program.programs.items():
        if not isinstance(part, Program):
            raise ArgumentError(f"the part for @{name} is interpreted and cannot be saved")
        members[f"devices/{name}.irees"] = bytes_of(part)
    _write(path, members)


def bytes_of(program: Program) -> bytes:
    """The contents of the file that `save` writes."""
    buffer = io.BytesIO()
    _archive(buffer, _members_of(program))
    return buffer.getvalue()


def _members_of(program: Program) -> dict[str, Any]:
    states = {STATE + name: array for name, array in program.state.items()}
    offsets, constants = _pack({**program.constants, **states})
    record = {"format": FORMAT, **program.manifest, "constant_data": offsets}
    kernels = {launch["source"] for launch in program.manifest.get("launches", ())}
    arch = (program.manifest.get("target") or {}).get("arch", "")
    return {
        "manifest.json": json.dumps(record, indent=1, sort_keys=True).encode(),
        "program.so": program.image,
        "runtime.so": program.runtime_image,
        **{f"cubins/{arch}/{name}.cubin": image for name, image in program.cubins.items()},
        **{
            f"sources/{name}.{'cu' if name in kernels else 'c'}": text.encode()
            for name, text in program.sources.items()
        },
        "constants.bin": constants,
    }


def _archive(file: Any, members: Mapping[str, Any]) -> None:
    sums = "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in members.items()
    )
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in {_SUMS: sums.encode(), **members}.items():
            _add(archive, name, data)


def _write(path: Any, members: Mapping[str, Any]) -> None:
    write_whole(path_of(path, "save to"), lambda file: _archive(file, members))


@fenced
def load(
    path: str | Path,
    *,
    mmap_constants: bool = False,
    devices: Mapping[str, str] | None = None,
) -> Program | DeviceProgram:
    """
    Loads a program that `Program.save` wrote. A multi-device program runs on the devices that it
    was compiled for, or on `devices` of the same kinds. With `mmap_constants` the constants are
    mapped from the file, which then must not change while the program lives.

    Raises ParseError for a file that is damaged or not a saved program, UnsupportedError for one
    that this machine cannot run, ArgumentError for a path that cannot be read.
    """
    path = path_of(path, "load")
    try:
        with open(path, "rb") as file:
            data = _map(file) if mmap_constants else _read_aligned(file)
            members = _members(data, str(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ArgumentError(f"cannot read {path}: {reason}") from None
    try:
        if _SCHEDULE in members:
            return _device_program(members, str(path), devices)
        if devices:
            raise ArgumentError("the program has no devices to choose")
        return _program(members)
    except ParseError as error:
        raise ParseError(error.message, location=str(path)) from None


@fenced
def load_bytes(data: Any, name: str, services: Services | None = None) -> Program:
    """Loads a program from a file's bytes, on a device's services. Raises the errors of `load`."""
    return _program(_members(data, name), services)


def _device_program(
    members: dict[str, memoryview], path: str, devices: Mapping[str, str] | None
) -> DeviceProgram:
    record = _json(members[_SCHEDULE], "schedule")
    if devices:
        if devices.keys() != record.get("devices", {}).keys():
            known = ", ".join(f"@{name}" for name in record.get("devices", {}))
            raise ArgumentError(f"the devices of the program are {known}")
        record["devices"] = dict(devices)
    parts = {
        name.removeprefix("devices/").removesuffix(".irees"): data
        for name, data in members.items()
        if name.startswith("devices/")
    }
    makers = {name: partial(load_bytes, data, path) for name, data in parts.items()}
    runtimes = (bytes(_members(data, path)["runtime.so"]) for data in parts.values())
    return DeviceProgram(record, makers, runtime=next(runtimes, None))


def is_artifact(path: str | Path) -> bool:
    """Whether a file begins with a zip signature, like a saved program."""
    try:
        with open(path_of(path, "read"), "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except (OSError, ValueError):
        return False


def _program(members: dict[str, memoryview], services: Services | None = None) -> Program:
    manifest = _manifest(members)
    constants = _unpack(manifest.pop("constant_data", {}), members["constants.bin"])
    code = Code(
        bytes(members["program.so"]),
        bytes(members["runtime.so"]),
        sources={
            name.removeprefix("sources/").rpartition(".")[0]: bytes(text).decode(errors="replace")
            for name, text in members.items()
            if name.startswith("sources/")
        },
        cubins={
            name.rpartition("/")[2].removesuffix(".cubin"): bytes(image)
            for name, image in members.items()
            if name.startswith("cubins/")
        },
    )
    return Program(code, manifest, constants, services=services)


def _manifest(members: dict[str, memoryview]) -> dict[str, Any]:
    return _json(members["manifest.json"], "manifest")


def _json(text: memoryview, what: str) -> dict[str, Any]:
    if len(text) > MAX_MANIFEST_BYTES:
        raise ParseError(f"the {what} has {len(text)} bytes, more than {MAX_MANIFEST_BYTES}")
    try:
        found = json.loads(bytes(text))
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the {what} is not JSON: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ParseError(
            f"the {what} is not of format {FORMAT}", hint="save the program again with this irees"
        )
    del found["format"]
    return found


def _members(data: Any, path: str) -> dict[str, memoryview]:
    """The members by name, as views of the file, after checking their hashes."""
    view = memoryview(data)
    try:
        with zipfile.ZipFile(_Reader(view)) as archive:
            found = {info.filename: _slice(view, info) for info in archive.infolist()}
        sums = [line.split("  ", 1) for line in bytes(found.pop(_SUMS)).decode().splitlines()]
        expected = {name: digest for digest, name in sums}
    except (zipfile.BadZipFile, KeyError, ValueError, IndexError, NotImplementedError) as error:
        raise ParseError(f"not a saved program: {error}", location=path) from None
    required = {"manifest.json", "program.so", "runtime.so", "constants.bin"}
    for name in {*(required if _SCHEDULE not in found else ()), *found, *expected}:
        if name not in found or name not in expected:
            raise ParseError(f"damaged: {name!r} is missing", location=path)
        if hashlib.sha256(found[name]).hexdigest() != expected[name]:
            raise ParseError(f"damaged: {name!r} has a wrong SHA-256", location=path)
    return found


def _slice(view: memoryview, info: zipfile.ZipInfo) -> memoryview:
    header = bytes(view[info.header_offset : info.header_offset + _LOCAL_HEADER])
    if len(header) < _LOCAL_HEADER or info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename!r} is compressed or cut off")
    begin = info.header_offset + _LOCAL_HEADER
    begin += int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    if begin + info.file_size > len(view):
        raise ValueError(f"{info.filename!r} ends after the file")
    return view[begin : begin + info.file_size]


def _add(archive: zipfile.ZipFile, name: str, data: Any) -> None:
    info = zipfile.ZipInfo(name)  # default date of 1980: saving is deterministic
    assert archive.fp is not None
    begin = archive.fp.tell() + _LOCAL_HEADER + len(name.encode()) + _ZIP64_EXTRA
    padding = -(begin + 4) % CACHE_LINE
    info.extra = _PADDING_TAG.to_bytes(2, "little") + padding.to_bytes(2, "little") + bytes(padding)
    with archive.open(info, "w", force_zip64=True) as member:
        member.write(data)


def _pack(constants: Mapping[str, np.ndarray[Any, Any]]) -> tuple[dict[str, list[int]], bytearray]:
    offsets: dict[str, list[int]] = {}
    data = bytearray()
    for name, array in constants.items():
        data += bytes(-len(data) % CACHE_LINE)
        offsets[name] = [len(data), array.nbytes]
        data += array.reshape(-1).view(np.uint8).data
    return offsets, data


def _unpack(offsets: Any, data: memoryview) -> dict[str, np.ndarray[Any, Any]]:
    if not isinstance(offsets, dict):
        raise ParseError("the manifest's 'constant_data' must be an object")
    constants: dict[str, np.ndarray[Any, Any]] = {}
    for name, place in offsets.items():
        match place:
            case [int(begin), int(size)] if 0 <= begin <= begin + size <= len(data):
                constants[name] = np.frombuffer(data[begin : begin + size], np.uint8)
            case _:
                raise ParseError(f"the constant {name!r} is outside of constants.bin")
    return constants


def _map(file: Any) -> Any:
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file
        return b""


def _read_aligned(file: Any) -> Any:
    size = os.fstat(file.fileno()).st_size
    room = memoryview(aligned_room(size))
    count = file.readinto(room)
    return room[:count]


class _Reader:
    """A readable file over a memoryview, without the copy that BytesIO makes."""

    def __init__(self, view: memoryview):
        self.view = view
        self.place = 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = 0) -> int:
        place = offset + (0, self.place, len(self.view))[whence]
        if place < 0:
            raise ValueError("negative seek")
        self.place = place
        return place

    def read(self, size: int = -1) -> bytes:
        end = len(self.view) if size is None or size < 0 else self.place + size
        data = bytes(self.view[self.place : end])
        self.place += len(data)
        return data
