"""The shape of error messages, and the exit codes."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import (
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)

from irees import errors
from irees.errors import InternalError, IreesError, describe_location
from irees.remarks import collect, remark

PLACE = FileLineColLoc(StringAttr("x.mlir"), IntAttr(5), IntAttr(8))


def test_one_shape():
    error = IreesError("needs a", location="x.mlir:1:2", op="tensor.pad", hint="give it a")
    assert str(error) == "x.mlir:1:2: error: tensor.pad: needs a; give it a"
    assert str(IreesError("needs a")) == "needs a"
    assert IreesError("needs a").diagnostic() == "irees: error: needs a"


def test_an_op_brings_its_location():
    module = ModuleOp([])
    module.location = PLACE
    assert str(IreesError("is empty", op=module)) == "x.mlir:5:8: error: builtin.module: is empty"


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (None, None),
        ("", None),
        ("a:1:2", "a:1:2"),
        (PLACE, "x.mlir:5:8"),
        (UnknownLoc(), None),
        (FusedLoc([UnknownLoc(), PLACE], NoneAttr()), "x.mlir:5:8"),
    ],
)
def test_locations(location, text):
    assert describe_location(location) == text


def test_exit_codes():
    codes = {
        errors.ParseError: 1,
        errors.VerifyError: 1,
        errors.ArgumentError: 1,
        errors.UnsupportedError: 3,
        errors.ToolchainError: 4,
        errors.DeviceError: 4,
        errors.LimitExceededError: 5,
        errors.OutOfMemoryError: 5,
        errors.RuntimeTrap: 6,
        errors.InternalError: 70,
    }
    assert {kind: kind("x").exit_code for kind in codes} == codes
    assert all(issubclass(kind, IreesError) for kind in codes)


def test_an_internal_error_names_its_reproducer():
    error = InternalError("broken", reproducer="r.mlir")
    assert error.reproducer == "r.mlir"
    assert str(error) == "broken; please report it with the file r.mlir"


def test_remarks_are_heard_only_inside():
    remark("passed", "irees-a", PLACE, "nobody hears")
    with collect() as heard:
        remark("missed", "irees-a", ModuleOp([]), "too large")
        with collect() as inner:
            remark("analysis", "irees-b", PLACE, "found")
    assert [str(line) for line in heard] == ["remark: [missed] irees-a: too large"]
    assert [str(line) for line in inner] == ["x.mlir:5:8: remark: [analysis] irees-b: found"]
