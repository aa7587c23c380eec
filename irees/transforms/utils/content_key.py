"""Content keys of functions: equal functions have equal keys, in every process."""

from __future__ import annotations

import hashlib

from xdsl.dialects import func
from xdsl.ir import Block, Operation, Region, SSAValue

DIGITS = 16


def content_key(function: func.FuncOp) -> str:
    """
    Returns a hash of the ops of a function in order, with values numbered by definition. The names
    of values and of the function, locations and discardable attributes are ignored.
    """
    numbers: dict[SSAValue, int] = {}
    digest = hashlib.sha256()

    def add(*words: object) -> None:
        digest.update("\0".join(map(str, words)).encode() + b"\n")

    def add_region(region: Region) -> None:
        add("{")
        for block in region.blocks:
            add_block(block)
        add("}")

    def add_block(block: Block) -> None:
        for argument in block.args:
            numbers[argument] = len(numbers)
        add("^", *(a.type for a in block.args))
        for op in block.ops:
            add_op(op)

    def add_op(op: Operation) -> None:
        properties = (f"{name}={value}" for name, value in sorted(op.properties.items()))
        operands = (numbers[operand] for operand in op.operands)
        add(op.name, *operands, *(r.type for r in op.results), *properties)
        for result in op.results:
            numbers[result] = len(numbers)
        for region in op.regions:
            add_region(region)

    add_region(function.body)
    return digest.hexdigest()[:DIGITS]
