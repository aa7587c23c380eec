"""What `save` and the tools may write over: regular files, and nothing else."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import numpy as np
import pytest

import irees
from irees.errors import ArgumentError
from irees.runtime import files
from irees.runtime.events import write_trace
from irees.runtime.files import path_of, write_whole
from irees.tools.common import write_bytes

TEXT = """
func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = arith.addf %x, %x : tensor<3xf32>
  return %y : tensor<3xf32>
}
"""
X = np.arange(3, dtype=np.float32)


@pytest.fixture(scope="module")
def programs():
    return irees.compile(TEXT), irees.compile(TEXT, devices={"dev_0": "cpu:0"})


def make(kind: str, folder: Path) -> Path:
    """A thing of that kind, which is no regular file, in a folder."""
    path = folder / "x.irees"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif kind == "link to nothing":
        path.symlink_to(folder / "nothing")
    elif kind == "link to itself":
        path.symlink_to(path)
    else:
        target = folder / "target"
        os.mkfifo(target) if kind == "link to a pipe" else target.mkdir()
        path.symlink_to(target)
    return path


KINDS = (
    "folder",
    "pipe",
    "socket",
    "link to nothing",
    "link to itself",
    "link to a pipe",
    "link to a folder",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("entry", ["save", "save devices", "write_trace"])
def test_nothing_but_a_file_is_replaced(entry, kind, tmp_path, programs):
    path = make(kind, tmp_path)
    before = os.lstat(path)
    names = sorted(os.listdir(tmp_path))
    write = programs[entry == "save devices"].save if entry != "write_trace" else None
    with pytest.raises(ArgumentError, match="cannot write"):
        write(path) if write else write_trace([], path)
    assert os.lstat(path) == before
    assert sorted(os.listdir(tmp_path)) == names


@pytest.mark.parametrize("mode", [stat.S_IFCHR, stat.S_IFBLK])
@pytest.mark.parametrize("follow", [False, True], ids=["device", "link"])
def test_a_device_is_not_replaced(mode, follow, tmp_path, programs, monkeypatch):
    """Nodes of devices are made by root only, and no test may touch those of the machine."""
    device, link = tmp_path / "device", tmp_path / "link"
    device.write_bytes(b"node")
    link.symlink_to(device)

    def of_device(real):
        def found(path, *args, **named):
            result = real(path, *args, **named)
            if Path(path) != device:
                return result
            return os.stat_result((mode | 0o666, *result[1:10]))

        return found

    monkeypatch.setattr(files.os, "lstat", of_device(os.lstat))
    monkeypatch.setattr(files.os, "stat", of_device(os.stat))
    with pytest.raises(ArgumentError, match="it is a device"):
        programs[0].save(link if follow else device)
    assert device.read_bytes() == b"node"


def test_a_file_that_may_not_be_written_is_kept(tmp_path, programs, monkeypatch):
    path = tmp_path / "x.irees"
    path.write_bytes(b"old")
    path.chmod(0o444)
    monkeypatch.setattr(files.os, "access", lambda *_: False)  # root may write all files
    with pytest.raises(ArgumentError, match="it is read-only"):
        programs[0].save(path)
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("existing", [None, "file", "link", "link in a folder"])
def test_files_are_replaced(existing, tmp_path, programs):
    path = target = tmp_path / "x.irees"
    if existing == "file":
        path.write_bytes(b"old")
    elif existing is not None:
        target = (
            tmp_path / "elsewhere" / "y.irees" if "folder" in existing else tmp_path / "y.irees"
        )
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(b"old")
        path.symlink_to(target)
    programs[0].save(path)
    assert path.is_symlink() == (target != path)
    assert not target.is_symlink()
    assert irees.load(path)(X).tolist() == [0.0, 2.0, 4.0]
    assert not [name for name in os.listdir(target.parent) if name.startswith(".irees-")]


def test_a_write_that_fails_leaves_nothing(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def fails(file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(ArgumentError, match="No space left"):
        write_whole(path, fails)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


WRONG = [None, 5, True, b"x", [], object(), "", "\0x", "a\0b", Path("x\0y"), 2.5, np.int64(3)]


@pytest.mark.parametrize("path", WRONG, ids=lambda path: type(path).__name__)
def test_what_is_no_path(path, programs):
    """A number is an open file to `open`, which reads it and then closes it."""
    for program in programs:
        with pytest.raises(ArgumentError, match="cannot save to"):
            program.save(path)
    with pytest.raises(ArgumentError, match="cannot load"):
        irees.load(path)
    with pytest.raises(ArgumentError, match="cannot read"):
        path_of(path, "read")


def test_load_does_not_close_what_it_is_not_given(tmp_path):
    (tmp_path / "x").write_bytes(b"some bytes")
    with open(tmp_path / "x", "rb") as file:
        with pytest.raises(ArgumentError):
            irees.load(file.fileno())
        assert file.read() == b"some bytes"


@pytest.mark.parametrize("name", ["", ".", "nowhere/x.irees", "x" * 5000])
def test_paths_that_cannot_be_written(name, tmp_path, programs, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="cannot"):
        programs[0].save(name)
    assert os.listdir(tmp_path) == []


def test_the_tools_write_into_pipes_and_do_not_replace_them(tmp_path):
    """`-o /dev/stdout` and process substitutions of a shell are written to."""
    path = make("pipe", tmp_path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_bytes(path, b"text")
        assert os.read(reader, 9) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.lstat(path).st_mode)
    with pytest.raises(ArgumentError, match="a folder"):
        write_bytes(tmp_path, b"text")
