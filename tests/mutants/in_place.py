"""Runs a function in a child process in which the source of one file of irees has a fault."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from mutant import Mutant

ROOT = Path(__file__).parents[2]


def with_fault(mutant: Mutant, function: Callable[[], dict[str, Any]], cache: Path) -> Any:
    """
    Returns the function's result, and the processor seconds of the child and of what it ran.

    The caller must have imported nothing of irees: the child imports the file with the fault in
    place of the stored one, and no file is written. Mutants may share a cache, whose keys for
    programs have the name of the fault.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            os.environ["IREES_CACHE_DIR"] = str(cache)
            _put_in(mutant)
            _name_in_keys(mutant)
            try:
                answer = function()
            except Exception as error:
                answer = {"what": "error", "detail": f"{type(error).__name__}: {error}"[:300]}
            with os.fdopen(write, "w") as pipe:
                json.dump(answer | {"cpu_s": round(_seconds(), 1)}, pipe)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text or '{"what": "error", "detail": "the process died", "cpu_s": 0}')


def _put_in(mutant: Mutant) -> None:
    """Makes importing a file read the text with the fault, and no stored bytecode of it."""
    file = str(ROOT / mutant.file)
    right = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> Any:
        path = self.get_filename(fullname)
        if path != file:
            return right(self, fullname)
        text = Path(file).read_text()
        if text.count(mutant.old) != 1:
            raise ImportError(f"{mutant.name}: {file} has not exactly one\n{mutant.old}")
        return compile(text.replace(mutant.old, mutant.new), path, "exec")

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    read = Path.read_text

    def read_text(self: Path, *given: Any, **named: Any) -> str:
        text = read(self, *given, **named)
        return text.replace(mutant.old, mutant.new) if str(self) == file else text

    if not file.endswith(".py"):
        Path.read_text = read_text  # type: ignore[method-assign]


def _name_in_keys(mutant: Mutant) -> None:
    """Programs of a compiler with a fault have other keys than those of the stored sources."""
    from irees import program_cache

    version = program_cache.compiler_version
    program_cache.compiler_version = lambda: f"{version()} {mutant.name}"  # type: ignore[assignment]


def _seconds() -> float:
    """The processor time of this process and of those that it waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))
