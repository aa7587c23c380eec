"""Saved programs: they load, and damaged ones are refused with a typed error."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from native_program import program

from irees.errors import ArgumentError, IreesError, ParseError
from irees.runtime.artifact import _members, is_artifact, load

ONES = np.ones((1, 2, 3), np.int64)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "x.irees"
    program().save(path)
    return path


@pytest.mark.parametrize("mapped", [False, True])
def test_round_trip(saved, mapped):
    again = load(saved, mmap_constants=mapped)
    assert again.functions["copy_i64"](ONES).sum() == 6
    assert again.manifest == program().manifest
    assert all(data.ctypes.data % 64 == 0 for data in again.constants.values())


def test_equal_programs_make_equal_files(saved, tmp_path):
    load(saved).save(tmp_path / "y.irees")
    assert saved.read_bytes() == (tmp_path / "y.irees").read_bytes()


def test_it_is_a_zip_that_tools_can_read(saved):
    with zipfile.ZipFile(saved) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("manifest.json"))["format"] == 1
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
    assert is_artifact(saved)


def test_it_runs_without_a_compiler(saved):
    code = (
        "import sys, numpy as np; from irees.runtime.artifact import load;"
        f"print(load({str(saved)!r}).functions['copy_i64'](np.ones((1, 2, 3), np.int64)).sum());"
        "print(any(name.startswith(('xdsl', 'irees.backends')) for name in sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={})
    assert answer.stdout.split() == ["6", "False"], answer.stderr


def test_every_flipped_bit_is_found_or_harmless(saved):
    data = saved.read_bytes()
    whole = {name: bytes(member) for name, member in _members(data, "x").items()}
    for place in range(0, len(data), 13):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        try:
            members = _members(bytes(damaged), "x")
        except IreesError:
            continue
        assert {name: bytes(member) for name, member in members.items()} == whole


def test_truncated_files(saved):
    data = saved.read_bytes()
    for size in (0, 1, 4, 100, len(data) // 2, len(data) - 1):
        saved.write_bytes(data[:size])
        for mapped in (False, True):
            with pytest.raises(ParseError):
                load(saved, mmap_constants=mapped)


def test_other_files(tmp_path):
    with pytest.raises(ArgumentError, match="cannot read"):
        load(tmp_path / "missing.irees")
    with pytest.raises(ArgumentError, match="cannot read"):
        load(tmp_path)
    with pytest.raises(ArgumentError, match="cannot write"):
        program().save(tmp_path / "no" / "folder.irees")
    assert not is_artifact(tmp_path / "missing.irees")


def _rewrite(path, name, content):
    """The same archive with another member, and with the sum that belongs to it."""
    import hashlib

    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    members[name] = content
    del members["SHA256SUMS"]
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {key}\n" for key, data in members.items())
    with zipfile.ZipFile(path, "w") as archive:
        for key, data in {"SHA256SUMS": sums.encode(), **members}.items():
            archive.writestr(key, data)


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"format": 2}',
        b'{"format": 1, "functions": [{"name": "f"}]}',
        b'{"format": 1, "functions": [], "constant_data": {"k": [0, 1e9]}}',
        b'{"format": 1, "functions": [], "constant_data": {"k": [8, 999999]}}',
        b'{"format": 1, "functions": [], "constant_data": [1]}',
    ],
)
def test_hostile_manifests(saved, manifest):
    _rewrite(saved, "manifest.json", manifest)
    with pytest.raises(ParseError, match=r"x\.irees: error"):
        load(saved)
