"""The cache: whatever state its folder is in, the answer is right or "not found"."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import warnings

import pytest

from irees.runtime import cache
from irees.runtime.cache import Cache, CacheWarning, default_cache, digest_of, key_of

KEY = key_of("a", "key")


@pytest.fixture
def store(tmp_path):
    return Cache(tmp_path)


@pytest.fixture
def fresh(monkeypatch):
    default_cache.cache_clear()
    yield monkeypatch
    default_cache.cache_clear()


def test_put_and_get(store):
    assert store.get(KEY) is None
    assert store.put(KEY, b"content")
    assert store.get(KEY) == b"content"
    assert store.stats()["entries"] == 1
    assert store.stats()["hits"] == 1
    assert store._path(KEY).stat().st_mode & 0o077 == 0


def test_keys_know_where_parts_end():
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("\ud800") != key_of("?")


def test_digests_know_the_order_of_all_bytes(monkeypatch):
    """Pieces are hashed by themselves; where parts end says nothing, every byte does."""
    monkeypatch.setattr(cache, "_PIECE", 4)
    text = b"abcdefghij"
    whole = digest_of(text)
    for place in range(len(text) + 1):
        assert digest_of(text[:place], b"", memoryview(text)[place:]) == whole
    others = [text[:i] + bytes([text[i] ^ 1]) + text[i + 1 :] for i in range(len(text))]
    others += [text[4:8] + text[:4] + text[8:], text[:8], text[:9], b"", text + b"\0"]
    assert len({whole, *map(digest_of, others)}) == 1 + len(others)
    pieces = b"".join(hashlib.sha256(text[i : i + 4]).digest() for i in (0, 4, 8))
    assert whole == hashlib.sha256(pieces).digest()


def test_every_flipped_byte_is_found(store):
    for place in range(len(b"content") + 40):
        store.put(KEY, b"content")
        data = bytearray(store._path(KEY).read_bytes())
        data[place] ^= 16
        store._path(KEY).write_bytes(data)
        assert store.get(KEY) is None
        assert not store._path(KEY).exists()
    assert store.counts.rejected == len(b"content") + 40


def test_an_entry_under_another_key_is_refused(store):
    other = key_of("other")
    store.put(KEY, b"content")
    store._path(other).parent.mkdir(exist_ok=True)
    os.rename(store._path(KEY), store._path(other))
    assert store.get(other) is None


@pytest.mark.parametrize("kind", ["link", "folder", "fifo", "cut"])
def test_what_is_not_an_entry(store, kind, tmp_path):
    store.put(KEY, b"content")
    path = store._path(KEY)
    whole = path.read_bytes()
    path.unlink()
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(whole)
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(whole[:10])
    assert store.get(KEY) is None


def test_verify_prune_and_clear(store):
    keys = [key_of(str(i)) for i in range(6)]
    for i, key in enumerate(keys):
        store.put(key, bytes(1000))
        os.utime(store._path(key), (i, i))
    store._path(keys[5]).write_bytes(b"damage")
    assert store.verify() == [store._path(keys[5])]
    assert store.prune(2100) == 3
    assert [key for key in keys if store.get(key) is not None] == keys[3:5]
    assert store.clear() == 2
    assert store.get(keys[3]) is None


def test_abandoned_files_go(store):
    store.put(KEY, b"content")
    left = store._path(KEY).with_name(".new-left")
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    store.prune(1 << 30)
    assert not left.exists()
    assert store.get(KEY) == b"content"


def test_a_full_disk_is_no_error(store, monkeypatch):
    def full(*_, parallel):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "_seal", full)
    assert not store.put(KEY, b"content")
    assert store.counts.unwritten == 1
    assert list(store.root.rglob(".new-*")) == []


def test_a_read_only_folder_is_read(store, monkeypatch):
    store.put(KEY, b"content")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache.tempfile, "mkstemp", refuse)
    assert not store.put(key_of("new"), b"more")
    assert store.get(KEY) == b"content"


@pytest.mark.parametrize("kind", ["writable by others", "file", "link", "under a file", "foreign"])
def test_bad_folders_fall_back_with_one_warning(fresh, tmp_path, kind):
    fresh.setenv("IREES_CACHE_DIR", str(tmp_path / "c"))
    root = tmp_path / "c" / cache.VERSION
    if kind == "under a file":
        (tmp_path / "c").write_text("")
    else:
        (tmp_path / "c").mkdir()
    if kind == "writable by others":
        root.mkdir()
        root.chmod(0o777)
    elif kind == "file":
        root.write_text("")
    elif kind == "link":
        root.symlink_to(tmp_path)
    elif kind == "foreign":
        root.mkdir()
        fresh.setattr(cache.os, "geteuid", lambda: 12345)
        if root.lstat().st_uid == 0:
            os.chown(root, 54321, -1)
    with pytest.warns(CacheWarning, match="cannot be used"):
        store = default_cache()
    fresh.undo()
    assert store.root != root
    assert store.put(KEY, b"content")
    assert store.get(KEY) == b"content"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert default_cache() is store


def test_default_folders(fresh, tmp_path):
    fresh.delenv("IREES_CACHE_DIR")
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache().root == tmp_path / "irees" / cache.VERSION
    assert default_cache().root.stat().st_mode & 0o777 == 0o700


def test_many_processes_and_kills(tmp_path):
    code = (
        "import sys; from pathlib import Path; from irees.runtime.cache import *\n"
        "store = Cache(Path(sys.argv[1]))\n"
        "for i in range(100000):\n"
        "    key = key_of(str(i % 50)); found = store.get(key)\n"
        "    assert found in (None, key.encode() * 500)\n"
        "    store.put(key, key.encode() * 500)\n"
        "    if i == 150 and sys.argv[2] == 'ends': break\n"
    )
    run = [sys.executable, "-c", code, str(tmp_path)]
    ending = [subprocess.Popen([*run, "ends"]) for _ in range(4)]
    killed = [subprocess.Popen([*run, "killed"]) for _ in range(3)]
    assert [process.wait(60) for process in ending] == [0] * 4
    for process in killed:
        assert process.poll() is None
        process.kill()
        process.wait()
    assert Cache(tmp_path).verify() == []


def slow_write(monkeypatch, store):
    """Lets the entry of the next `put_later` be written only after the returned event."""
    begin = threading.Event()
    put = store.put

    def wait_and_put(key, *parts, **options):
        assert begin.wait(60)
        return put(key, *parts, **options)

    monkeypatch.setattr(cache, "LATER_BYTES", 4)
    monkeypatch.setattr(store, "put", wait_and_put)
    return begin


def test_a_reader_waits_for_the_entry_that_is_being_written(store, monkeypatch):
    begin = slow_write(monkeypatch, store)
    store.put_later(KEY, b"large ", b"content")
    assert not store._path(KEY).exists()
    threading.Timer(0.05, begin.set).start()
    assert store.get(KEY) == b"large content"
    store.put_later(key_of("other"), b"content")
    assert store.stats()["entries"] == 2
    assert store.verify() == []


def test_a_small_entry_is_written_at_once(store, monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", lambda self: pytest.fail("a thread"))
    store.put_later(KEY, b"content")
    assert store._path(KEY).exists()


def test_an_entry_is_written_at_once_if_no_thread_can_be_started(store, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(cache, "LATER_BYTES", 4)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    store.put_later(KEY, b"content")
    assert store.get(KEY) == b"content"


def test_a_background_writer_may_prune(tmp_path, monkeypatch):
    """The writer that evicts entries does not wait for itself."""
    monkeypatch.setattr(cache, "LATER_BYTES", 4)
    store = Cache(tmp_path, max_bytes=0)
    store.put_later(KEY, b"content")
    assert store.get(KEY) is None
    assert store.counts.unwritten == 0


def test_background_problems_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "LATER_BYTES", 4)
    (tmp_path / "file").write_bytes(b"")
    store = Cache(tmp_path / "file")
    store.put_later(KEY, b"content")
    assert store.get(KEY) is None
    assert store.counts.unwritten == 1


@pytest.mark.parametrize("forks", [False, True], ids=["exit", "fork"])
def test_python_waits_for_background_writers(tmp_path, forks):
    """At exit; a forked child has no writer, and finds nothing instead of waiting forever."""
    program = (
        "import os, sys, time\nfrom pathlib import Path\n"
        "from irees.runtime.cache import Cache, key_of\n"
        "store = Cache(Path(sys.argv[1]))\n"
        "put = store.put\n"
        "store.put = lambda *a, **o: (time.sleep(0.3), put(*a, **o))\n"
        "store.put_later(key_of('a'), bytes(20 << 20))\n"
        "assert not store._path(key_of('a')).exists()\n"
    )
    if forks:
        program += (
            "if os.fork() == 0: os._exit(int(store.get(key_of('a')) is not None))\n"
            "assert os.wait()[1] == 0\n"
        )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, tmp_path], timeout=60)
    assert done.returncode == 0
    assert Cache(tmp_path).get(key_of("a")) == bytes(20 << 20)
