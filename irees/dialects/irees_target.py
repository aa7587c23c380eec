"""
`#irees.target`: the machine that a module is compiled for, as an attribute of the module.

    builtin.module attributes {irees.target = #irees.target<{arch = "x86-64-v3", threads = 4, ...}>}

Passes read all machine facts from this attribute. Facts that it leaves out default to those of
`DEFAULT`. IREE: `#hal.executable.target`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from irees.errors import ArgumentError
from irees.target import GPUS, X86_LEVELS, GpuFacts, Target

TARGET, FP, TF32 = "irees.target", "irees.fp", "irees.allow_tf32"
"""Module attributes: the target, whether reductions keep their order (`"strict"`), and whether f32
matmul operands may be rounded to tf32."""

DEFAULT = Target(
    arch="x86-64-v4",
    features=X86_LEVELS["x86-64-v4"],
    vector_bytes=64,
    vector_registers=32,
    l1_bytes=32 << 10,
    l2_bytes=1 << 20,
    l3_bytes=32 << 20,
    threads=2,
)
"""Target of a module without the attribute: a server core with AVX-512, two threads."""

DEFAULT_GPU = replace(
    GPUS["sm_80"], shared_opt_in_bytes=48 << 10, matrix_kinds=(), asynchronous_copies=False
)
"""GPU facts if the target has no GPU: an A100 without matrix instructions and async copies."""


@irdl_attr_definition
class TargetAttr(ParametrizedAttribute):
    """Machine facts, keyed by field name of `Target`; GPU facts are a nested dictionary `gpu`."""

    name = "irees.target"

    facts: DictionaryAttr

    def verify(self) -> None:
        try:
            target_from(self)
        except ArgumentError as error:
            raise VerifyException(error.message) from error


def attribute_of(target: Target) -> TargetAttr:
    """Returns the attribute with all facts of a target."""
    return TargetAttr(_dictionary(target))


@cache
def target_from(attribute: TargetAttr) -> Target:
    """Returns the target that an attribute describes. Raises ArgumentError for an unknown fact."""
    data = dict(attribute.facts.data)
    gpu = data.pop("gpu", None)
    base = DEFAULT
    if isinstance(gpu, DictionaryAttr):
        facts = replace(DEFAULT_GPU, **_facts(GpuFacts, gpu.data))
        base = replace(DEFAULT, kind="cuda-emulated", gpu=facts)
    return replace(base, **_facts(Target, data))


def target_of(op: Operation) -> Target:
    """Returns the target of the op's module, or `DEFAULT`."""
    attribute = _on_module(op, TARGET)
    return target_from(attribute) if isinstance(attribute, TargetAttr) else DEFAULT


def gpu_of(op: Operation) -> GpuFacts:
    """Returns the facts of the GPU that an op is compiled for, or `DEFAULT_GPU`."""
    return target_of(op).gpu or DEFAULT_GPU


def is_strict(op: Operation) -> bool:
    """Whether float ops must keep the program's order and rounding."""
    return _on_module(op, FP) == StringAttr("strict")


def allows_tf32(op: Operation) -> bool:
    """Whether a GPU may round the operands of f32 matmuls to tf32."""
    return _on_module(op, TF32) is not None


def dot_products_of(op: Operation) -> tuple[str, ...]:
    """
    Returns the target's dot-product instructions that an op may use.

    In strict mode only integer ones: float ones reorder the sum and flush subnormals.
    """
    target = target_of(op)
    return target.integer_dot_products if is_strict(op) else target.dot_products


def matrix_kinds_of(op: Operation) -> tuple[str, ...]:
    """Returns the element types of matrix instructions that an op may use; tf32 only if allowed."""
    kinds = gpu_of(op).matrix_kinds
    return tuple(kind for kind in kinds if kind != "tf32" or allows_tf32(op))


def assign_target(module: ModuleOp, target: Target, *, strict: bool, tf32: bool) -> None:
    """Sets a module's target and floating-point options."""
    module.attributes[TARGET] = attribute_of(target)
    for name, value, given in ((FP, StringAttr("strict"), strict), (TF32, UnitAttr(), tf32)):
        if given:
            module.attributes[name] = value
        else:
            module.attributes.pop(name, None)


def drop_target(module: ModuleOp) -> None:
    """Removes the attributes that `assign_target` sets."""
    for name in (TARGET, FP, TF32):
        module.attributes.pop(name, None)


def _on_module(op: Operation, name: str) -> Attribute | None:
    """Returns the attribute from the innermost enclosing module that has it, or None."""
    module: Operation | None = op
    while module is not None:
        if isinstance(module, ModuleOp) and name in module.attributes:
            return module.attributes[name]
        module = module.parent_op()
    return None


def _dictionary(facts: Target | GpuFacts) -> DictionaryAttr:
    """Returns the fields of a dataclass as a dictionary attribute, without those that are None."""
    values = {each.name: getattr(facts, each.name) for each in fields(facts)}
    return DictionaryAttr({k: _value(v) for k, v in values.items() if v is not None})


def _value(value: object) -> Attribute:
    match value:
        case bool():
            return BoolAttr.from_bool(value)
        case int():
            return IntegerAttr(value, i64)
        case str():
            return StringAttr(value)
        case tuple():
            return ArrayAttr([StringAttr(str(word)) for word in value])
        case GpuFacts():
            return _dictionary(value)
        case _:
            raise AssertionError(value)


def _facts(kind: type[Target | GpuFacts], data: dict[str, Attribute]) -> dict[str, object]:
    """Returns the fields of a dataclass from a dictionary. Raises ArgumentError for a bad fact."""
    known = {each.name for each in fields(kind)}
    found: dict[str, object] = {}
    for name, value in data.items():
        if name not in known:
            hint = f"use one of {', '.join(sorted(known))}"
            raise ArgumentError(f"unknown target fact {name!r}", hint=hint)
        match value:
            case IntegerAttr():
                small = value.type == BoolAttr.from_bool(True).type
                found[name] = bool(value.value.data) if small else value.value.data
            case StringAttr():
                found[name] = value.data
            case ArrayAttr():
                found[name] = tuple(
                    word.data for word in value.data if isinstance(word, StringAttr)
                )
            case _:
                raise ArgumentError(f"target fact {name!r} has the unsupported value {value}")
    return found
