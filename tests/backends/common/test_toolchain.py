"""The C toolchain: real compilers, and fake ones that do everything that compilers do wrong."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time

import pytest

from irees.backends.common import toolchain
from irees.backends.common.toolchain import compile_library, find_compiler, runtime_library
from irees.errors import ToolchainError
from irees.runtime.cache import Cache
from irees.runtime.library import Library
from irees.target import cpu_target

ANSWER = 'int __attribute__((visibility("default"))) answer(void) { return 42; }'


@pytest.fixture
def store(tmp_path):
    return Cache(tmp_path / "cache")


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Makes a compiler of a shell script; `$CC` in it is the real one."""
    real = shlex.quote(" ".join(find_compiler().command))

    def make(script, name="fake-cc"):
        path = tmp_path / name
        path.write_text(
            f'#!/bin/sh\nif [ "$1" = --version ]; then echo fake; exit 0; fi\nCC={real}\n{script}\n'
        )
        path.chmod(0o755)
        monkeypatch.setenv("IREES_CC", str(path))
        return path

    return make


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(toolchain.tempfile, "tempdir", str(tmp_path / "tmp"))
    toolchain._zig_command.cache_clear()


def answer_of(image):
    library = Library(image)  # unloaded when it dies, so it has to outlive the call
    return library.cdll.answer()


@pytest.mark.parametrize("fp", ["default", "strict"])
@pytest.mark.parametrize("arch", ["native", "generic"])
@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_every_option(store, fp, arch, opt_level):
    image = compile_library(
        {"k": ANSWER}, target=cpu_target(arch), fp=fp, opt_level=opt_level, store=store
    )
    assert answer_of(image) == 42


def test_the_second_time_nothing_runs(store, monkeypatch):
    sources = {f"k{i}": f"int f{i}(void) {{ return {i}; }}" for i in range(5)} | {"k": ANSWER}
    image = compile_library(sources, store=store)
    monkeypatch.setattr(toolchain._Build, "_attempt", None)
    assert compile_library(sources, store=store) == image
    assert compile_library({**sources, "other": ANSWER}, store=store) == image


def test_only_the_changed_text_is_compiled(store):
    sources = {f"k{i}": f"int f{i}(void) {{ return {i}; }}" for i in range(5)}
    compile_library(sources, store=store)
    before = store.counts.misses
    compile_library({**sources, "k2": ANSWER}, store=store)
    assert store.counts.misses == before + 2  # the library and one object


def test_a_large_host_text_is_not_optimized(store, fake, tmp_path, monkeypatch):
    fake(f'echo "$@" >> {tmp_path}/log; exec $CC "$@"')
    monkeypatch.setattr(toolchain, "LARGE_HOST", len(ANSWER))
    longer = ANSWER.replace("answer", "longer_answer")

    def unoptimized(name: str, text: str) -> bool:
        compile_library({name: text}, store=store)
        lines = (tmp_path / "log").read_text().splitlines()
        return "-O0" in [line for line in lines if " -c " in line][-1]

    assert not unoptimized("host", ANSWER)
    assert not unoptimized("k", longer)
    assert unoptimized("host", longer)


def test_builds_are_reproducible(tmp_path):
    sources = {"a": ANSWER, "b": "int b(void) { return 1; }"}
    first = compile_library(sources, store=Cache(tmp_path / "1"))
    assert compile_library(sources, store=Cache(tmp_path / "2")) == first
    assert str(tmp_path).encode() not in first


def test_nothing_is_left_behind(store, tmp_path):
    compile_library({"k": ANSWER}, store=store)
    assert os.listdir(tmp_path / "tmp") == []


def test_an_error_names_command_exit_output_and_text(store, tmp_path):
    with pytest.raises(ToolchainError) as info:
        compile_library({"wrong_kernel": "int f( {"}, store=store)
    text = str(info.value)
    assert "on wrong_kernel, failed with exit 1" in text
    assert "-fwrapv" in text
    assert "error: expected" in text
    kept = text.rsplit(" ", 1)[1]
    assert [open(os.path.join(kept, name)).read() for name in os.listdir(kept)] == ["int f( {"]


def test_undefined_symbols_are_found_when_linking(store):
    with pytest.raises(ToolchainError, match="the linker failed"):
        compile_library({"k": "int g(void); int f(void) { return g(); }"}, store=store)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo broken >&2; exit 3", "failed with exit 3"),
        ("kill -9 $$", "was killed by signal 9"),
        ("exit 0", "produced no"),
        ('while [ "$1" != -o ]; do shift; done; : > "$2"', "produced an empty"),
        ("yes line | head -1000 >&2; exit 1", "failed with exit 1"),
        ("printf '\\377\\376' >&2; exit 1", "failed with exit 1"),
    ],
)
def test_compilers_that_fail(store, fake, script, message):
    fake(script)
    with pytest.raises(ToolchainError, match=message) as info:
        compile_library({"k": ANSWER}, store=store)
    assert len(str(info.value).splitlines()) <= 2 + toolchain.STDERR_LINES


def test_a_library_of_garbage(store, fake):
    fake('while [ "$1" != -o ]; do shift; done; echo garbage > "$2"')
    with pytest.raises(ToolchainError, match="cannot load"):
        Library(compile_library({"k": ANSWER}, store=store))


def test_warnings_are_no_errors(store, fake):
    fake('echo "warning: beware" >&2; exec $CC "$@"')
    assert answer_of(compile_library({"k": ANSWER}, store=store)) == 42


def test_a_compiler_that_crashes_at_o3_is_asked_for_o1(store, fake):
    fake(
        'for a in "$@"; do [ "$a" = -O3 ] && { echo "internal compiler error" >&2; exit 4; }; done; exec $CC "$@"'
    )
    assert answer_of(compile_library({"k": ANSWER}, store=store)) == 42


def test_a_compiler_that_hangs_is_killed_with_its_children(store, fake, tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "TIME_LIMIT_SECONDS", 0.5)
    fake(f"sleep 100 & echo $! > {tmp_path}/child; wait")
    begin = time.monotonic()
    with pytest.raises(ToolchainError, match="ran longer than"):
        compile_library({"k": ANSWER}, store=store)
    assert time.monotonic() - begin < 10
    time.sleep(0.1)
    child = int((tmp_path / "child").read_text())
    status = f"/proc/{child}/status"
    assert not os.path.exists(status) or "Z (zombie)" in open(status).read()


def test_words_after_the_compiler_and_a_hostile_environment(store, fake, monkeypatch):
    path = fake(
        '[ "$1" = -DX=1 ] || exit 9; [ -z "$CPATH$GCC_EXEC_PREFIX" ] || exit 8; exec $CC "$@"'
    )
    monkeypatch.setenv("CPATH", "/nowhere")
    monkeypatch.setenv("GCC_EXEC_PREFIX", "/nowhere")
    path.write_text(path.read_text().replace('"$1" = --version', '"$2" = --version'))
    monkeypatch.setenv("IREES_CC", f"{path} -DX=1")
    assert answer_of(compile_library({"k": ANSWER}, store=store)) == 42


@pytest.mark.parametrize("variable", ["IREES_CC", "CC"])
def test_a_chosen_compiler_that_is_missing(store, monkeypatch, variable):
    monkeypatch.delenv("IREES_CC", raising=False)
    monkeypatch.setenv(variable, "/no/such/cc")
    with pytest.raises(ToolchainError, match=f"missing; correct {variable}"):
        compile_library({"k": ANSWER}, store=store)


def test_no_compiler_at_all(monkeypatch, tmp_path):
    for variable in ("IREES_CC", "CC"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "find_spec", lambda _: None)
    with pytest.raises(ToolchainError, match="there is no C compiler"):
        find_compiler()


def test_zig_takes_over_with_one_line(monkeypatch, tmp_path, caplog):
    pytest.importorskip("ziglang")
    for variable in ("IREES_CC", "CC"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_compiler().is_zig
    assert find_compiler().is_zig
    assert [record.getMessage()[:24] for record in caplog.records] == ["no C compiler on PATH: u"]


@pytest.mark.slow
def test_zig_compiles(store, monkeypatch):
    pytest.importorskip("ziglang")
    monkeypatch.setenv("IREES_CC", f"{sys.executable} -m ziglang cc")
    assert answer_of(compile_library({"k": ANSWER}, store=store)) == 42
    Library(runtime_library(store)).address("irees_rt_get")


def test_another_compiler_is_another_key(store, fake):
    first = fake('exec $CC "$@"', "cc-1")
    key = find_compiler().identity
    fake('exec  $CC "$@"', "cc-2")
    assert find_compiler().identity != key
    assert first.exists()


def test_no_temporary_folder(store, monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(toolchain.tempfile, "mkdtemp", full)
    with pytest.raises(ToolchainError, match="No space left on device"):
        compile_library({"k": ANSWER}, store=store)


def test_a_full_disk_while_writing(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(toolchain.Path, "write_bytes", full)
    with pytest.raises(ToolchainError, match="No space left on device"):
        compile_library({"k": ANSWER}, store=store)


def test_a_cache_that_cannot_be_written(store, monkeypatch):
    monkeypatch.setattr(Cache, "put", lambda *_: False)
    assert answer_of(compile_library({"k": ANSWER}, store=store)) == 42


def test_one_build_per_key(store, fake, tmp_path):
    fake(f'echo run >> {tmp_path}/runs; exec $CC "$@"')
    images = []

    def build():
        images.append(compile_library({"k": ANSWER}, store=store))

    builders = [threading.Thread(target=build) for _ in range(8)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert len(set(images)) == 1
    assert (tmp_path / "runs").read_text().split() == ["run"] * 2


def test_interrupt_kills_the_compilers(tmp_path):
    script = tmp_path / "cc"
    script.write_text(
        f"#!/bin/sh\n[ $1 = --version ] && exit 0\necho $$ > {tmp_path}/pid\nexec sleep 100\n"
    )
    script.chmod(0o755)
    code = "from irees.backends.common.toolchain import *; compile_library({'k': 'int f;'})"
    environment = {**os.environ, "IREES_CC": str(script), "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stderr=subprocess.DEVNULL,
        # A shell starts background jobs with the signal ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) in (1, 130, -signal.SIGINT)
    compiler = int((tmp_path / "pid").read_text())
    time.sleep(0.1)
    assert not os.path.exists(f"/proc/{compiler}")
    assert os.listdir(tmp_path / "tmp") == []


def test_many_libraries_in_one_process(store):
    images = [
        compile_library({"k": ANSWER.replace("42", str(i))}, store=store, opt_level=0)
        for i in range(6)
    ]
    libraries = [Library(image) for image in images * 3]
    assert [library.cdll.answer() for library in libraries] == list(range(6)) * 3
    del libraries
    assert [answer_of(image) for image in images] == list(range(6))


def test_libraries_load_where_memory_files_are_forbidden(store, monkeypatch):
    image = compile_library({"k": ANSWER}, store=store)
    monkeypatch.delattr(os, "memfd_create")
    assert answer_of(image) == 42


def test_unloaded_libraries_leave_the_process(store):
    image = compile_library({"k": ANSWER + "int unloaded;"}, store=store)
    before = open("/proc/self/maps").read().count("memfd:irees")
    assert answer_of(image) == 42
    assert open("/proc/self/maps").read().count("memfd:irees") == before
