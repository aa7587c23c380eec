"""
The cache of compiled code: a folder of files named by the hash of their inputs.

A cache problem is never an error: a bad folder, a full disk or a flipped bit is a cache miss, and
the caller rebuilds. The rules:

* one entry is one file, so its parts always come from the same build;
* the file ends with a digest of its key and content, checked at every read; the checked bytes
  are the ones that are loaded (`irees.runtime.library`);
* a file is written under a private name and then renamed; a published file is immutable;
* the folder belongs to this user (or to root) and no other user may write to it; otherwise a
  private temporary folder is used, with one warning.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from irees.runtime.alignment import aligned_room

MAX_BYTES = 4 << 30
VERSION = "v2"
_MAGIC = b"IREES-C2"
_DIGEST_BYTES = 32
_TRAILER_BYTES = _DIGEST_BYTES + len(_MAGIC)
_PIECE = 4 << 20
_PRUNE_EVERY = 256
LATER_BYTES = 16 << 20
"""Minimum size of an entry that `put_later` writes in the background, in bytes."""
# Age at which the private file of a killed writer is deleted; no write takes that long.
_ABANDONED_SECONDS = 3600


class CacheWarning(UserWarning):
    """The cache folder cannot be used: compilation still works, but is slower."""


@dataclass
class Counts:
    """Event counts since the start of the process."""

    hits: int = 0
    misses: int = 0
    rejected: int = 0
    unwritten: int = 0


def key_of(*parts: str | bytes) -> str:
    """The SHA-256 of all parts and their lengths, in hexadecimal."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def digest_of(*parts: bytes | memoryview, parallel: bool = True) -> bytes:
    """
    A 32-byte digest of the concatenated parts; the boundaries between them do not matter.

    A two-level SHA-256, for which processors have instructions: pieces are hashed in parallel,
    then their digests. One core would take seconds to hash hundreds of megabytes of weights.
    """
    pieces = list(_pieces(parts))
    if len(pieces) == 1:
        return _sha256(pieces[0])
    if not parallel:
        return _sha256([b"".join(map(_sha256, pieces))])
    with ThreadPoolExecutor() as pool:
        return _sha256([b"".join(pool.map(_sha256, pieces))])


def _pieces(parts: Sequence[bytes | memoryview]) -> Iterator[list[memoryview]]:
    """Splits the concatenated parts into views of _PIECE bytes; the last may be shorter."""
    piece: list[memoryview] = []
    room = _PIECE
    for part in parts:
        view = memoryview(part)
        view = view.cast("B") if view.nbytes else view
        while view.nbytes:
            if not room:
                yield piece
                piece, room = [], _PIECE
            piece.append(view[:room])
            room -= len(piece[-1])
            view = view[len(piece[-1]) :]
    yield piece


def _sha256(views: Sequence[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256()
    for view in views:
        digest.update(view)
    return digest.digest()


@dataclass
class Cache:
    """The cache entries in one folder. No method raises OSError."""

    root: Path
    max_bytes: int = MAX_BYTES
    counts: Counts = field(default_factory=Counts)
    _writes: int = 0
    _pending: dict[str, threading.Thread] = field(default_factory=dict)
    """Key of an entry => the thread that writes it."""

    def get(self, key: str) -> memoryview | None:
        """
        Returns the content of an entry, aligned to a cache line; None if missing or damaged.
        """
        self._wait(key)
        path = self._path(key)
        try:
            entry = _read_regular_file(path)
        except OSError:
            self.counts.misses += 1
            return None
        content = _unseal(key, entry)
        if content is None:
            self.counts.rejected += 1
            _quietly(os.unlink, path)
            return None
        self.counts.hits += 1
        _quietly(os.utime, path)
        return content

    def put_later(self, key: str, *parts: bytes | memoryview) -> None:
        """
        Publishes an entry like `put`, but writes a large one in a thread of its own, one at a time.

        The caller must not change the parts afterwards. This object waits for the thread where it
        matters, and Python waits for it at exit.
        """
        self._wait(*self._pending)
        if sum(memoryview(part).nbytes for part in parts) < LATER_BYTES:
            self.put(key, *parts)
            return
        # Python may be shutting down when the thread hashes: no pool can be started then.
        write = partial(self.put, key, *parts, parallel=False)
        thread = threading.Thread(target=write, name="irees-cache", daemon=False)
        try:
            thread.start()
        except RuntimeError:  # no thread can be started
            write()
        else:
            self._pending[key] = thread

    def _wait(self, *keys: str) -> None:
        """Waits until the entries of these keys are published."""
        for key in keys:
            thread = self._pending.get(key)
            # A writer that prunes the cache does not wait for itself.
            if thread is not None and thread is not threading.current_thread():
                thread.join()
                self._pending.pop(key, None)

    def put(self, key: str, *parts: bytes | memoryview, parallel: bool = True) -> bool:
        """
        Publishes the concatenated parts as an entry, hashed by several threads if `parallel`;
        returns False if it cannot be written.
        """
        path = self._path(key)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, private = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        except OSError:
            self.counts.unwritten += 1
            return False
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines((*parts, _seal(key, *parts, parallel=parallel)))
            os.replace(private, path)
        except OSError:
            self.counts.unwritten += 1
            _quietly(os.unlink, private)
            return False
        if self._writes % _PRUNE_EVERY == 0:
            self.prune(self.max_bytes)
        self._writes += 1
        return True

    def entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """All published entries with their status."""
        self._wait(*self._pending)
        for path in sorted(self.root.glob("[0-9a-f][0-9a-f]/*")):
            try:
                status = path.lstat()
            except OSError:
                continue
            if len(path.name) == 64:
                yield path, status

    def stats(self) -> dict[str, object]:
        """The folder, its entries and bytes, and the counts of this process."""
        sizes = [status.st_size for _, status in self.entries()]
        return {
            "folder": str(self.root),
            "entries": len(sizes),
            "bytes": sum(sizes),
            "max_bytes": self.max_bytes,
            **vars(self.counts),
        }

    def verify(self) -> list[Path]:
        """Checks every entry; removes the damaged ones and returns their paths."""
        damaged: list[Path] = []
        for path, _ in self.entries():
            try:
                whole = _unseal(path.name, _read_regular_file(path)) is not None
            except OSError:
                whole = False
            if not whole:
                damaged.append(path)
                _quietly(os.unlink, path)
        return damaged

    def clear(self) -> int:
        """Removes everything in the folder; returns how many entries there were."""
        count = sum(1 for _ in self.entries())
        for folder in (*self.root.glob("[0-9a-f][0-9a-f]"), self.root / "zig"):
            shutil.rmtree(folder, ignore_errors=True)
        return count

    def prune(self, max_bytes: int) -> int:
        """Evicts least recently used entries until the rest fits; returns the number removed."""
        found = sorted(self.entries(), key=lambda entry: entry[1].st_mtime)
        total = sum(status.st_size for _, status in found)
        removed = 0
        for path, status in found:
            if total <= max_bytes:
                break
            _quietly(os.unlink, path)
            total -= status.st_size
            removed += 1
        self._remove_abandoned(found[-1][1].st_mtime if found else 0.0)
        return removed

    def _remove_abandoned(self, newest: float) -> None:
        for path in self.root.glob("[0-9a-f][0-9a-f]/.new-*"):
            try:
                if path.lstat().st_mtime < newest - _ABANDONED_SECONDS:
                    path.unlink()
            except OSError:
                continue

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / key


@cache
def default_cache() -> Cache:
    """The cache of this process, in `IREES_CACHE_DIR` or the user's cache folder."""
    root = _default_root()
    reason = "no home folder" if root is None else _why_not(root)
    if root is None or reason:
        warnings.warn(
            f"cache folder {root} cannot be used: {reason}; using a temporary folder",
            CacheWarning,
            stacklevel=2,
        )
        root = Path(tempfile.mkdtemp(prefix="irees-cache-"))
        atexit.register(_remove_if_owner, root, os.getpid())
    return Cache(root)


def _default_root() -> Path | None:
    if chosen := os.environ.get("IREES_CACHE_DIR"):
        return Path(chosen).absolute() / VERSION
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "irees" / VERSION
    try:
        home = Path.home()
    except RuntimeError:
        return None
    caches = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return caches / "irees" / VERSION


def _why_not(root: Path) -> str | None:
    """Creates the folder if necessary; returns why it cannot be trusted, or None."""
    try:
        root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        status = root.lstat()
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if status.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    if status.st_mode & 0o022:
        return "other users may write to it"
    return None


def _remove_if_owner(root: Path, pid: int) -> None:
    # A forked child inherits the handler, but does not own the folder.
    if os.getpid() == pid:
        shutil.rmtree(root, ignore_errors=True)


def _seal(key: str, *parts: bytes | memoryview, parallel: bool = True) -> bytes:
    """The trailer of an entry."""
    return digest_of(key.encode(), *parts, parallel=parallel) + _MAGIC


def _unseal(key: str, entry: memoryview) -> memoryview | None:
    content, seal = entry[:-_TRAILER_BYTES], entry[-_TRAILER_BYTES:]
    return content if seal == _seal(key, content) else None


def _read_regular_file(path: Path) -> memoryview:
    """Reads a file into memory aligned for vectors."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (os.geteuid(), 0):
            raise OSError(f"{path} is not a file of this user")
        room = memoryview(aligned_room(status.st_size))
        return room[: file.readinto(room)]


def _quietly(action, *arguments) -> None:
    try:
        action(*arguments)
    except OSError:
        pass
