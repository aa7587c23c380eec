"""
Compiles C texts to a shared library: finds the C compiler, runs it, and caches the results.

Every text becomes an object, and all objects become one library. Both are cached by content
(`irees.runtime.cache`), so a change in one kernel recompiles one file. The compiler runs as a
process with an argument list, a clean environment and a time limit, never through a shell.
gcc, clang and `zig cc` get the same flags.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from irees.errors import ToolchainError
from irees.runtime.cache import Cache, default_cache, key_of
from irees.target import Target, cpu_target, default_threads, host_features

FORMAT = "irees-object-1"
TIME_LIMIT_SECONDS = 120
STDERR_LINES = 20
NATIVE = Path(__file__).parents[2] / "runtime" / "native"

_OPTIMIZATION = {0: "-O0", 1: "-O1", 2: "-O3", 3: "-O3"}
HOST = "host"
"""The name of the text that calls the kernels."""
LARGE_HOST = 128 << 10
"""
Minimum length, in characters, of a host text that is compiled without optimization. Such a text has
hundreds of calls in a row, and the time of gcc's alias analysis is quadratic in their number.
"""
# gnu11, because c11 enables trigraphs. IR semantics need wrapping signed overflow and no
# type-based aliasing. errno and float traps are off: neither changes a result.
_COMPILE_FLAGS = (
    *("-fPIC", "-fvisibility=hidden", "-fwrapv", "-fno-strict-aliasing"),
    *("-fno-fast-math", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"),
    "-Werror=return-type",
)
_C_FLAGS = ("-std=gnu11", "-Werror=implicit-function-declaration")
# No use of the C++ runtime library, so the C compiler can link.
_CXX_FLAGS = ("-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
_LINK_FLAGS = ("-Wl,-z,defs", "-Wl,-z,noexecstack") if sys.platform == "linux" else ()
# Environment variables that could change the result of a compilation.
_FOREIGN_ENVIRONMENT = (
    *("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH"),
    *("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "LD_PRELOAD", "CFLAGS", "LDFLAGS"),
)

_log = logging.getLogger("irees.toolchain")
_flights: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
_flights_lock = threading.Lock()


@dataclass(frozen=True)
class Compiler:
    """A C compiler: its command, and the identity that is part of cache keys."""

    command: tuple[str, ...]
    version: str
    identity: str

    @property
    def is_zig(self) -> bool:
        """Whether this is `zig cc`, which enables checks for undefined behaviour by default."""
        return any(Path(word).name in ("zig", "ziglang") for word in self.command)


@dataclass(frozen=True)
class Language:
    """A source language: where to find its compiler, and the flags for it."""

    name: str
    suffix: str
    variables: tuple[str, ...]
    candidates: tuple[str, ...]
    zig: str
    flags: tuple[str, ...]


C = Language("C", ".c", ("IREES_CC", "CC"), ("clang", "gcc", "cc"), "cc", _C_FLAGS)
CXX = Language("C++", ".cpp", ("IREES_CXX", "CXX"), ("clang++", "g++", "c++"), "c++", _CXX_FLAGS)


def find_compiler(language: Language = C) -> Compiler:
    """
    Returns the first compiler found: `IREES_CC`, `CC`, clang, gcc, cc, then the `ziglang`
    package; for C++ `IREES_CXX`, `CXX`, clang++, g++, c++, then `ziglang`.

    Raises ToolchainError when there is none, or when the chosen one does not run.
    """
    for variable in language.variables:
        if chosen := os.environ.get(variable, "").strip():
            command = shlex.split(chosen)
            if not shutil.which(command[0]):
                raise ToolchainError(
                    f"the {language.name} compiler {command[0]!r} is missing",
                    hint=f"correct {variable}",
                )
            return _probe(tuple(command))
    if found := next(filter(shutil.which, language.candidates), None):
        return _probe((found,))
    return _probe(_zig_command(language))


@cache
def _zig_command(language: Language = C) -> tuple[str, ...]:
    spec = find_spec("ziglang")
    if spec is None or not spec.origin:
        raise ToolchainError(
            f"there is no {language.name} compiler "
            f"({', '.join((*language.variables, *language.candidates))})",
            hint="install gcc or clang, or `pip install irees[zig]`",
        )
    _log.warning(
        "no %s compiler on PATH: using zig, whose first compilation takes seconds", language.name
    )
    binary = Path(spec.origin).with_name("zig")
    zig = (str(binary),) if binary.exists() else (sys.executable, "-m", "ziglang")
    return (*zig, language.zig)


@cache
def _probe(command: tuple[str, ...]) -> Compiler:
    try:
        answer = subprocess.run(
            [*command, "--version"],
            capture_output=True,
            timeout=TIME_LIMIT_SECONDS,
            stdin=subprocess.DEVNULL,
            env=_environment(None),
        )
    except (OSError, subprocess.SubprocessError) as error:
        name = shlex.join(command)
        raise ToolchainError(f"the C compiler {name} does not run: {error}") from None
    if answer.returncode:
        raise ToolchainError(_describe_failure([*command, "--version"], answer.returncode, answer))
    version = answer.stdout.decode(errors="replace").strip()
    facts = [version]
    for word in command:
        if (path := shutil.which(word)) and not word.startswith("-"):
            status = os.stat(path)
            facts += [os.path.realpath(path), str(status.st_size), str(status.st_mtime_ns)]
    identity = key_of(*command, *facts)
    return Compiler(command, version.splitlines()[0] if version else "", identity)


@dataclass(frozen=True)
class Job:
    """One text to compile, with the command for it."""

    name: str
    text: str
    command: tuple[str, ...]
    language: Language


class LibraryCompiler:
    """
    Compiles one library in parallel: each text starts compiling as soon as it is known.

    A context manager: on an early exit (an error or Ctrl-C) it kills the running compilers.
    """

    def __init__(
        self,
        *,
        target: Target | None = None,
        fp: str = "default",
        opt_level: int = 2,
        store: Cache | None = None,
        defines: Sequence[str] = (),
    ):
        self.store = store or default_cache()
        self.target = target or cpu_target()
        self.fp, self.opt_level, self.defines = fp, opt_level, tuple(defines)
        self.build = _Build(self.store)
        self.commands: dict[tuple[Language, int], tuple[tuple[str, ...], tuple[Any, ...]]] = {}

    def __enter__(self) -> LibraryCompiler:
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.build.close(error)

    def begin_runtime(self) -> None:
        """Starts to compile the runtime library, which every program needs."""
        self.build.pool.submit(runtime_library, self.store)

    def begin(self, name: str, text: str, language: Language = C) -> None:
        """Starts to compile a text that the library may need."""
        key, job = self._job(name, text, language)
        self.build.begin(key, job)

    def library(
        self, sources: Mapping[str, str], cxx_sources: Mapping[str, str] | None = None
    ) -> bytes:
        """
        Returns the image of the library built from C texts (name => text) and C++ texts.

        Names are used in error messages only, not in the library. Raises ToolchainError.
        """
        jobs = dict(self._job(name, text, C) for name, text in sources.items())
        jobs |= dict(self._job(name, text, CXX) for name, text in (cxx_sources or {}).items())
        library_key = key_of("library", *_LINK_FLAGS, *jobs)
        with _single_flight(library_key):
            if (image := self.store.get(library_key)) is not None:
                return bytes(image)
            image = self.build.link(self.build.objects(jobs), find_compiler())
            self.store.put(library_key, image)
        return image

    def _job(self, name: str, text: str, language: Language) -> tuple[str, Job]:
        """The cache key of a text's object, and the job that compiles it."""
        level = 0 if name == HOST and len(text) > LARGE_HOST else self.opt_level
        if (language, level) not in self.commands:
            compiler = find_compiler(language)
            flags = _compile_flags(compiler, language, self.target, self.fp, level)
            flags += [f"-D{name}" for name in self.defines]
            header = (NATIVE / "irees.h").read_bytes()
            features = " ".join(sorted(host_features())) if "native" in " ".join(flags) else ""
            common = (FORMAT, compiler.identity, " ".join(flags), features, header)
            self.commands[language, level] = ((*compiler.command, *flags), common)
        command, common = self.commands[language, level]
        return key_of(*common, text), Job(name, text, command, language)


def compile_library(
    sources: Mapping[str, str], cxx_sources: Mapping[str, str] | None = None, **options: Any
) -> bytes:
    """Compiles a library from a complete set of texts; `options` are LibraryCompiler's."""
    with LibraryCompiler(**options) as compiler:
        return compiler.library(sources, cxx_sources)


def runtime_library(store: Cache | None = None) -> bytes:
    """The library of `runtime/native/runtime.c`, for the baseline CPU of the host's family."""
    text = (NATIVE / "runtime.c").read_text()
    return compile_library({"runtime": text}, target=cpu_target("generic"), store=store)


def _compile_flags(
    compiler: Compiler, language: Language, target: Target, fp: str, opt_level: int
) -> list[str]:
    # gcc's vectorizer contracts products and alternating sums (vfmaddsub) even with the option off.
    exact = ["-ffp-contract=off", "-fno-tree-vectorize"]
    contract = exact if fp == "strict" else ["-ffp-contract=fast"]
    flags = [*language.flags, *_COMPILE_FLAGS, _OPTIMIZATION[opt_level], *contract]
    if not compiler.is_zig:
        return [*flags, *target.c_flags]
    # zig has its own CPU names, and compiles for the host CPU unless -mcpu is given.
    plain = target.arch == "generic" or target.gpu is not None
    processor = "baseline" if plain else target.arch.replace("-", "_")
    # By default, zig adds UB checks, and debug info that contains the folder's name.
    return [*flags, f"-mcpu={processor}", "-fno-sanitize=undefined", "-g0"]


@contextmanager
def _single_flight(key: str) -> Iterator[None]:
    """Serializes builds of the same key in this process; later ones find it in the cache."""
    with _flights_lock:
        flight = _flights.setdefault(key, threading.Lock())
    with flight:
        yield


class _Build:
    """The compiler processes of one library, and their private working folder."""

    def __init__(self, store: Cache):
        self.store = store
        self.folder: Path | None = None
        self.processes: set[subprocess.Popen[bytes]] = set()
        self.stopped = False
        self.running: dict[str, Future[Path]] = {}
        self.pool = ThreadPoolExecutor(max(1, default_threads()))

    def close(self, error: BaseException | None) -> None:
        """Kills running compilers; keeps the texts of failed compilations for the error message."""
        self._stop()
        self.pool.shutdown(cancel_futures=True)
        if self.folder is None:
            return
        if not isinstance(error, ToolchainError):
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        for path in self.folder.iterdir():
            if path.suffix not in (C.suffix, CXX.suffix):
                _remove(path)
        if any(self.folder.glob("*.c*")):
            error.hint = f"the C text is kept in {self.folder}"
        else:
            _remove(self.folder)

    def begin(self, key: str, job: Job) -> None:
        """Starts to compile a text, unless it was started before."""
        if key in self.running:
            return
        if self.folder is None:
            try:
                self.folder = Path(tempfile.mkdtemp(prefix="irees-cc-"))
            except OSError as error:
                raise ToolchainError(f"no temporary folder: {error.strerror}") from None
        path = self.folder / f"{key[:16]}.o"
        self.running[key] = self.pool.submit(self._compile_one, path, key, job)

    def objects(self, jobs: Mapping[str, Job]) -> list[Path]:
        """The objects of all texts, in order: from the cache, or compiled in parallel."""
        for key, job in jobs.items():
            self.begin(key, job)
        wanted = [self.running[key] for key in jobs]
        waiting = set(wanted)
        while waiting:
            # Polls, because Ctrl-C may interrupt another thread and not wake this one.
            done, waiting = wait(waiting, timeout=0.1, return_when=FIRST_EXCEPTION)
            for each in wanted:
                if each in done:
                    each.result()
        return [each.result() for each in wanted]

    def _compile_one(self, path: Path, key: str, job: Job) -> Path:
        if (content := self.store.get(key)) is not None:
            _write(path, content)
            return path
        source = path.with_suffix(job.language.suffix)
        _write(source, job.text.encode("utf-8"))
        tail = ["-I", str(NATIVE), "-c", source.name, "-o", path.name]
        self._run([*job.command, *tail], f"the {job.language.name} compiler, on {job.name},")
        self.store.put(key, _read(path))
        _remove(source)
        return path

    def link(self, objects: Sequence[Path], compiler: Compiler) -> bytes:
        """Links the objects; returns the image of the library."""
        names = [path.name for path in objects]
        tail = [*names, "-lm", "-lpthread", "-o", "library.so"]
        self._run([*compiler.command, "-shared", *_LINK_FLAGS, *tail], "the linker")
        assert self.folder is not None
        return _read(self.folder / "library.so")

    def _run(self, command: list[str], who: str) -> None:
        answer = self._attempt(command)
        crashed = answer.returncode < 0 or b"internal compiler error" in answer.stderr
        if crashed and "-O3" in command and not self.stopped:
            _log.warning("%s crashed; trying again with -O1", who)
            answer = self._attempt(["-O1" if word == "-O3" else word for word in command])
        if answer.returncode:
            raise ToolchainError(_describe_failure(command, answer.returncode, answer, who))

    def _attempt(self, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        try:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=_environment(self.folder, self.store.root),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolchainError(f"{command[0]} does not run: {error.strerror}") from None
        self.processes.add(process)
        if self.stopped:
            _kill(process)
        try:
            _, stderr = process.communicate(timeout=TIME_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise ToolchainError(
                f"the C compiler ran longer than {TIME_LIMIT_SECONDS} s: {shlex.join(command)}"
            ) from None
        finally:
            self.processes.discard(process)
        return subprocess.CompletedProcess(command, process.returncode, b"", stderr)

    def _stop(self) -> None:
        self.stopped = True
        for process in list(self.processes):
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # The compiler driver has child processes, which are in its process group.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass


def _environment(folder: Path | None, root: Path | None = None) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if name not in _FOREIGN_ENVIRONMENT}
    kept |= {"LC_ALL": "C"}
    if folder:
        kept |= {"TMPDIR": str(folder), "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}
    if root:
        kept.setdefault("ZIG_GLOBAL_CACHE_DIR", str(root / "zig"))
    return kept


def _describe_failure(
    command: Sequence[str],
    status: int,
    answer: subprocess.CompletedProcess[bytes],
    who: str = "the C compiler",
) -> str:
    how = f"was killed by signal {-status}" if status < 0 else f"failed with exit {status}"
    lines = answer.stderr.decode(errors="replace").splitlines()[-STDERR_LINES:]
    return "\n".join((f"{who} {how}: {shlex.join(command)}", *lines))


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ToolchainError(f"cannot write {path}: {error.strerror}") from None


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ToolchainError(f"the C compiler produced no {path.name}: {error.strerror}") from None
    if not content:
        raise ToolchainError(f"the C compiler produced an empty {path.name}")
    return content


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
