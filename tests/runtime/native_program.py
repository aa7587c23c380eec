"""The hand-written program `native_program.c` and its manifest, for the tests of the runtime."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from irees.backends.common.toolchain import compile_library, runtime_library
from irees.runtime.program import Code, Program

SOURCE = Path(__file__).with_name("native_program.c")


def tensor(dtype: str, *shape: int | None) -> dict[str, Any]:
    """An array in a manifest."""
    return {"kind": "tensor", "dtype": dtype, "shape": list(shape)}


def scalar(dtype: str) -> dict[str, Any]:
    """A scalar in a manifest."""
    return {"kind": "scalar", "dtype": dtype}


def function(name: str, entry: int, args: list[Any], results: list[Any], **more: Any) -> Any:
    """A function in a manifest."""
    return {"name": name, "entry": entry, "args": args, "results": results, **more}


ROWS = tensor("f32", None, 8)
COPIES = {"bf16": 2, "f16": 2, "i8": 1, "i1": 1, "i64": 8, "f64": 8, "f8E4M3FN": 1, "i32": 4}

MANIFEST: dict[str, Any] = {
    "functions": [
        function(
            "add",
            0,
            [ROWS, ROWS],
            [ROWS],
            equal_dims=[{"a": [0, 0], "b": [1, 0], "op": "linalg.generic", "loc": "x.mlir:5:8"}],
        ),
        function("scalars", 1, *[[scalar("f32"), scalar("i64"), scalar("i1")]] * 2),
        function(
            "stop",
            2,
            [tensor("f32", 4)],
            [tensor("f32", 4)],
            traps=[
                {"message": "index {0} is outside 0..{1}", "loc": "a.mlir:3:4", "op": "cf.assert"}
            ],
        ),
        *(
            function(
                f"copy_{dtype}",
                3,
                [tensor(dtype, None, 2, None)],
                [tensor(dtype, None, 2, None)],
                constants=[f"size{size}"],
            )
            for dtype, size in COPIES.items()
        ),
        function("too_much", 4, [], [tensor("i8", None)]),
        function("count", 5, [scalar("i64"), scalar("i64")], [tensor("i64", None)]),
    ],
    "memory": {"arena_bytes": 0},
}
CONSTANTS = {f"size{size}": size.to_bytes(8, "little") for size in (1, 2, 4, 8)}


@cache
def image() -> bytes:
    """The compiled library."""
    return compile_library({"native_program": SOURCE.read_text()})


@cache
def code() -> Code:
    """The code of the program."""
    return Code(image(), runtime_library())


@cache
def program() -> Program:
    """The program, loaded."""
    return Program(code(), MANIFEST, CONSTANTS)
