"""Reshapes of slices of bindings: numpy, the program, and the folded program agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir, print_module
from irees.interpreters import Interpreter
from irees.transforms import load_pass

LAYOUT = (
    "#layout = #hal.pipeline.layout<constants = 32, "
    "bindings = [#hal.pipeline.binding<storage_buffer>]>\n"
)
RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")


@dataclass
class Text:
    """A program as it is written: its constants, and the ops in front of the slice."""

    lines: list[str] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)

    def constant(self, number: int) -> str:
        name = f"%k{len(self.constants)}"
        self.lines.append(
            f"{name} = hal.interface.constant.load layout(#layout) "
            f"ordinal({len(self.constants)}) : index"
        )
        self.constants.append(number)
        return name

    def multiple(self, number: int, factor: int) -> str:
        """A value that is known to be a multiple of a factor."""
        name = f"%m{len(self.lines)}"
        base = self.constant(number // factor)
        self.lines.append(f"{name} = affine.apply affine_map<()[s0] -> (s0 * {factor})>()[{base}]")
        return name


def kind(sizes, dynamic) -> str:
    return "tensor<" + "".join("?x" if d else f"{n}x" for n, d in zip(sizes, dynamic)) + "i32>"


def factors(draw, number: int) -> list[int]:
    """A number as a product of up to three."""
    if number == 0:
        return draw(st.permutations([0, draw(st.integers(1, 3))]))
    result = [number]
    for _ in range(draw(st.integers(0, 2))):
        divisor = draw(st.sampled_from([d for d in range(1, result[0] + 1) if result[0] % d == 0]))
        result[:1] = [result[0] // divisor, divisor]
    return result


@dataclass
class Case:
    text: str
    constants: list[int]
    shape: list[int]
    place: tuple[slice, ...]
    value: list[int]
    """The shape of the value behind the reshape."""


@st.composite
def cases(draw, store: bool, split: bool) -> Case:
    """A slice of a binding, and a reshape of it; `split` says that the binding gets more dims."""
    t = Text()
    shape, dims, sizes, offsets, strides = [], [], [], [], []
    size_names, offset_names, kept, groups = [], [], [], []
    for d in range(draw(st.integers(1, 4))):
        role = draw(st.sampled_from(["full", "full", "same number", "part", "start", "dropped"]))
        group = factors(draw, draw(st.sampled_from([1, 2, 3, 4, 6, 8, 12, 0])))
        inner = max(1, prod(group[1:]))
        size = 1 if role == "dropped" else prod(group)
        before = after = 0
        if role in ("part", "dropped"):
            before, after = (
                draw(st.sampled_from([inner, 1])) * draw(st.integers(0, 2)) for _ in range(2)
            )
        if role == "start":
            # A part that begins where the dim does looks like all of it but for its size.
            after = inner * draw(st.integers(1, 2))
        # Every other element: what is between them must stay as it is.
        stride = draw(st.sampled_from([1, 1, 1, 2])) if role == "part" and size else 1
        strides.append(stride)
        total = before + (size - 1) * stride + 1 + after if size else before + after
        shape.append(total)
        dynamic = draw(st.booleans())
        dims.append(t.constant(total) if dynamic else None)
        if dynamic and draw(st.booleans()) and total % inner == 0:
            dims[-1] = t.multiple(total, inner)
        sizes.append(size)
        offsets.append(before)
        if role == "full":
            size_names.append(dims[-1] or str(size))
        elif role == "dropped" or (role != "start" and not draw(st.booleans())):
            size_names.append(str(size))
        else:
            size_names.append(t.constant(size))
        how = draw(st.sampled_from(["static", "dynamic", "multiple"]))
        if how == "multiple" and before % inner == 0:
            offset_names.append(t.multiple(before, inner))
        else:
            offset_names.append(str(before) if how == "static" else t.constant(before))
        if role != "dropped":
            kept.append(d)
            groups.append(group)
    value = [sizes[d] for d in kept]
    value_dynamic = [size_names[d].startswith("%") for d in kept]
    if split:
        other, other_dynamic, association, names = [], [], [], []
        for group, dynamic in zip(groups, value_dynamic):
            association.append(list(range(len(other), len(other) + len(group))))
            some = [dynamic and draw(st.booleans()) for _ in group]
            if dynamic and not any(some):
                some[draw(st.integers(0, len(group) - 1))] = True
            for n, is_dynamic in zip(group, some):
                other.append(n)
                other_dynamic.append(is_dynamic)
                names.append(t.constant(n) if is_dynamic else str(n))
    else:
        association, at = [], 0
        while at < len(value):
            count = draw(st.integers(1, len(value) - at))
            association.append(list(range(at, at + count)))
            at += count
        other = [prod(value[i] for i in g) for g in association]
        other_dynamic = [any(value_dynamic[i] for i in g) for g in association]
        names = [size_names[d] for d in kept]
    bound = kind(shape, [n is not None for n in dims])
    braces = ", ".join(n for n in dims if n is not None)
    braces = "{" + braces + "}" if braces else ""
    access = "writeonly" if store else "readonly"
    tensor = f"!iree_tensor_ext.dispatch.tensor<{access}:{bound}>{braces}"
    inner_kind, outer_kind = kind(value, value_dynamic), kind(other, other_dynamic)
    where = (
        f"offsets = [{', '.join(offset_names)}], sizes = [{', '.join(size_names)}], "
        f"strides = {strides}"
    )
    # What has more dims is expanded from what has fewer.
    expands = split != store
    fewer_to_more = f"{association} output_shape [{', '.join(names)}]" if expands else association
    op = RESHAPES[expands]
    body = [f"%b = hal.interface.binding.subspan layout(#layout) binding(0) : {tensor}"]
    if store:
        arguments, result = f"%x: {outer_kind}", ""
        body += [
            f"%v = {op} %x {fewer_to_more} : {outer_kind} into {inner_kind}",
            f"iree_tensor_ext.dispatch.tensor.store %v, %b, {where} : {inner_kind} -> {tensor}",
            "return",
        ]
    else:
        arguments, result = "", f" -> {outer_kind}"
        body += [
            f"%v = iree_tensor_ext.dispatch.tensor.load %b, {where} : {tensor} -> {inner_kind}",
            f"%r = {op} %v {fewer_to_more} : {inner_kind} into {outer_kind}",
            f"return %r : {outer_kind}",
        ]
    lines = "\n  ".join([*t.lines, *body])
    text = f"{LAYOUT}func.func @main({arguments}){result} {{\n  {lines}\n}}\n"
    place = tuple(
        slice(o, o + (n - 1) * s + 1 if n else o, s) for o, n, s in zip(offsets, sizes, strides)
    )
    return Case(text, t.constants, shape, place, other)


def run(module, case: Case, data: np.ndarray, *inputs: np.ndarray):
    """The results, and the binding afterwards."""
    binding = data.copy()
    interpreter = Interpreter(module)
    interpreter.bind([binding.view(np.uint8)], case.constants)
    return interpreter.call("main", *inputs), binding


def check(case: Case, store: bool, name: str) -> bool:
    """Whether the reshape is gone; asserts that everything agrees."""
    module = import_mlir(case.text)
    data = np.arange(1, prod(case.shape) + 1, dtype=np.int32)
    value = -np.arange(1, prod(case.value) + 1, dtype=np.int32).reshape(case.value)
    inputs = (value,) if store else ()
    expected = data.reshape(case.shape).copy()
    if store:
        part = expected[case.place]
        part[...] = value.reshape(part.shape)
    folded = module.clone()
    load_pass(name)().apply(get_context(), folded)
    folded.verify()
    for each in (module, folded):
        results, binding = run(each, case, data, *inputs)
        np.testing.assert_array_equal(binding.reshape(case.shape), expected, print_module(each))
        if not store:
            wanted = expected[case.place].reshape(case.value)
            np.testing.assert_array_equal(results[0], wanted, print_module(each))
    return not any(op.name in RESHAPES for op in folded.walk())


@pytest.mark.parametrize(
    "name", ["fold-reshape-into-interface-tensor", "propagate-reshapes-by-expansion"]
)
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("store", [False, True])
def test_folding_changes_nothing(store, split, name):
    gone = []

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases(store, split))
    def all_agree(case):
        gone.append(check(case, store, f"irees-{name}"))

    all_agree()
    # Both ways are taken, so the test says something about both.
    assert True in gone
    assert False in gone


SUBSPAN = "hal.interface.binding.subspan layout(#layout) binding(0)"
BAD_IN_IREE = {
    "a dropped dynamic dim before a dynamic kept one": (
        [3, 8], [3, 8], (slice(1, 2), slice(0, 8)), [2, 4],
        "tensor<2x?xi32>", "tensor<?xi32>", "[[0, 1]]", "tensor<?x?xi32>", "{%k0, %k1}",
        "offsets = [1, 0], sizes = [1, %k1]",
    ),
    "a dropped dim, a kept one, a group": (
        [3, 5, 8], [], (slice(1, 2), slice(0, 5), slice(0, 8)), [5, 2, 4],
        "tensor<5x2x4xi32>", "tensor<5x8xi32>", "[[0], [1, 2]]", "tensor<3x5x8xi32>", "",
        "offsets = [1, 0, 0], sizes = [1, 5, 8]",
    ),
    "a dropped dim in the middle, then a group": (
        [5, 3, 8], [], (slice(0, 5), slice(1, 2), slice(0, 8)), [5, 2, 4],
        "tensor<5x2x4xi32>", "tensor<5x8xi32>", "[[0], [1, 2]]", "tensor<5x3x8xi32>", "",
        "offsets = [0, 1, 0], sizes = [5, 1, 8]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(BAD_IN_IREE))
def test_dims_are_those_of_the_tensor(what):
    shape, constants, place, value, more, fewer, groups, bound, dims, where = BAD_IN_IREE[what]
    tensor = f"!iree_tensor_ext.dispatch.tensor<writeonly:{bound}>{dims}"
    loads = "\n".join(
        f"  %k{i} = hal.interface.constant.load layout(#layout) ordinal({i}) : index"
        for i in range(len(constants))
    )
    text = f"""{LAYOUT}func.func @main(%x: {more}) {{
{loads}
  %b = {SUBSPAN} : {tensor}
  %v = tensor.collapse_shape %x {groups} : {more} into {fewer}
  iree_tensor_ext.dispatch.tensor.store %v, %b, {where}, strides = [{", ".join("1" for _ in shape)}]
    : {fewer} -> {tensor}
  return
}}
"""
    case = Case(text, constants, shape, place, value)
    assert check(case, True, "irees-fold-reshape-into-interface-tensor")


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("width", [12, 13, 16])
def test_part_of_a_dim_that_is_no_multiple(rows, width):
    # Only the outermost dim may be cut off: the stride of another one depends on it.
    tensor = f"!iree_tensor_ext.dispatch.tensor<writeonly:tensor<{rows}x?xi32>>{{%n}}"
    text = f"""{LAYOUT}func.func @main(%x: tensor<{rows}x3x4xi32>) {{
  %n = hal.interface.constant.load layout(#layout) ordinal(0) : index
  %b = {SUBSPAN} : {tensor}
  %v = tensor.collapse_shape %x [[0], [1, 2]] : tensor<{rows}x3x4xi32> into tensor<{rows}x12xi32>
  iree_tensor_ext.dispatch.tensor.store %v, %b, offsets = [0, 0], sizes = [{rows}, 12],
    strides = [1, 1] : tensor<{rows}x12xi32> -> {tensor}
  return
}}
"""
    case = Case(text, [width], [rows, width], (slice(0, rows), slice(0, 12)), [rows, 3, 4])
    assert check(case, True, "irees-fold-reshape-into-interface-tensor") == (rows == 1)
