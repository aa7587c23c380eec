"""
Additions to xDSL's scf: `scf.forall` and its terminator, `scf.parallel` syntax, and `-> t`.

MLIR: `mlir/include/mlir/Dialect/SCF/IR/SCFOps.td`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    TensorType,
    i1,
    i64,
)
from xdsl.dialects.utils import (
    parse_assignment,
    parse_dynamic_index_list_without_types,
    print_dynamic_index_list,
    split_dynamic_index_list,
    verify_dynamic_index_list,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    IsTerminator,
    NoTerminator,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

_INSERTIONS = ("tensor.parallel_insert_slice", "iree_tensor_ext.parallel_insert_slice")

UNROLL = "irees.unroll"
"""Attribute of `scf.for`: the C or CUDA compiler unrolls the loop, whose trip count is static."""


@irdl_op_definition
class InParallelOp(IRDLOperation):
    """
    Terminator of `scf.forall`; holds the inserts into the shared outputs (MLIR:
    scf.forall.in_parallel).
    """

    name = "scf.forall.in_parallel"

    region = region_def("single_block")
    traits = traits_def(IsTerminator(), NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, region: Region | None = None):
        super().__init__(regions=[region or Region(Block())])

    @classmethod
    def parse(cls, parser: Parser) -> InParallelOp:
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        op = cls(region)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is not None and parent.name != "scf.forall":
            raise VerifyException("expects parent op 'scf.forall'")
        for op in self.region.block.ops:
            if op.name not in _INSERTIONS:
                raise VerifyException(f"expected only {_INSERTIONS[0]} ops, but got {op.name}")


@irdl_op_definition
class ForallOp(IRDLOperation):
    """Parallel loop nest: iterations run in any order or concurrently (MLIR: scf.forall)."""

    name = "scf.forall"

    dynamicLowerBound = var_operand_def(IndexType)
    dynamicUpperBound = var_operand_def(IndexType)
    dynamicStep = var_operand_def(IndexType)
    outputs = var_operand_def()
    staticLowerBound = prop_def(DenseArrayBase)
    staticUpperBound = prop_def(DenseArrayBase)
    staticStep = prop_def(DenseArrayBase)
    mapping = opt_prop_def(ArrayAttr)
    region = region_def("single_block")
    res = var_result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def over(
        cls,
        lower: Sequence[SSAValue | int],
        upper: Sequence[SSAValue | int],
        step: Sequence[SSAValue | int],
        outputs: Sequence[SSAValue],
        region: Region,
        mapping: ArrayAttr | None = None,
    ) -> ForallOp:
        """Returns a loop from lower to upper by step, with one result per shared output."""
        lists = [split_dynamic_index_list(values, DYNAMIC_INDEX) for values in (lower, upper, step)]
        names = ("staticLowerBound", "staticUpperBound", "staticStep")
        properties: dict[str, Attribute | None] = {
            name: DenseArrayBase.from_list(i64, static) for name, (static, _) in zip(names, lists)
        }
        return cls.build(
            operands=[*(dynamic for _, dynamic in lists), list(outputs)],
            properties={**properties, "mapping": mapping},
            result_types=[[value.type for value in outputs]],
            regions=[region],
        )

    @property
    def num_loops(self) -> int:
        """The number of induction variables, which are the first arguments of the body."""
        return len(self.staticUpperBound)

    def bounds(self) -> list[list[SSAValue | int]]:
        """Returns lower bounds, upper bounds and steps, each an int or a value."""
        result: list[list[SSAValue | int]] = []
        for kind in ("LowerBound", "UpperBound", "Step"):
            dynamic = iter(getattr(self, f"dynamic{kind}"))
            static = self.properties[f"static{kind}"].get_values()  # type: ignore[attr-defined]
            result.append([next(dynamic) if value == DYNAMIC_INDEX else value for value in static])
        return result

    @classmethod
    def parse(cls, parser: Parser) -> ForallOp:
        start = parser.pos
        names = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )

        def bound() -> tuple[list[int], Sequence[SSAValue]]:
            dynamic, static = parse_dynamic_index_list_without_types(
                parser, dynamic_index=DYNAMIC_INDEX, delimiter=Parser.Delimiter.PAREN
            )
            values = parser.resolve_operands(dynamic, [IndexType()] * len(dynamic), start)
            return list(static), values

        if parser.parse_optional_keyword("in"):
            upper = bound()
            lower: tuple[list[int], Sequence[SSAValue]] = ([0] * len(names), ())
            step: tuple[list[int], Sequence[SSAValue]] = ([1] * len(names), ())
        else:
            parser.parse_punctuation("=")
            lower = bound()
            parser.parse_keyword("to")
            upper = bound()
            parser.parse_keyword("step")
            step = bound()
        shared: list = []
        results: Sequence[Attribute] = ()
        if parser.parse_optional_keyword("shared_outs"):

            def pair():
                argument = parser.parse_argument(expect_type=False)
                parser.parse_punctuation("=")
                return argument, parser.parse_unresolved_operand()

            shared = parser.parse_comma_separated_list(parser.Delimiter.PAREN, pair)
            parser.parse_punctuation("->")
            results = _parse_types(parser)
        if len(results) != len(shared):
            parser.raise_error("expected one result type per shared output", start, parser.pos)
        outputs = parser.resolve_operands([value for _, value in shared], results, start)
        arguments = [each.resolve(IndexType()) for each in names]
        arguments += [each.resolve(type_) for (each, _), type_ in zip(shared, results)]
        region = parser.parse_region(arguments)
        attributes = dict(parser.parse_optional_attr_dict())
        block = region.block
        if block.last_op is None or not isinstance(block.last_op, InParallelOp):
            block.add_op(InParallelOp())
        op = cls.build(
            operands=[lower[1], upper[1], step[1], outputs],
            properties={
                "staticLowerBound": DenseArrayBase.from_list(i64, lower[0]),
                "staticUpperBound": DenseArrayBase.from_list(i64, upper[0]),
                "staticStep": DenseArrayBase.from_list(i64, step[0]),
                "mapping": attributes.pop("mapping", None),
            },
            result_types=[results],
            regions=[region],
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        arguments = self.region.block.args
        loops = self.num_loops
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(arguments[:loops], printer.print_ssa_value)

        def bound(kind: str) -> None:
            static = self.properties[f"static{kind}"].get_values()  # type: ignore[attr-defined]
            print_dynamic_index_list(
                printer,
                DYNAMIC_INDEX,
                getattr(self, f"dynamic{kind}"),
                static,
                delimiter=Parser.Delimiter.PAREN,
            )

        lower, step = self.staticLowerBound.get_values(), self.staticStep.get_values()
        if all(value == 0 for value in lower) and all(value == 1 for value in step):
            printer.print_string(" in ")
            bound("UpperBound")
        else:
            for text, kind in ((" = ", "LowerBound"), (" to ", "UpperBound"), (" step ", "Step")):
                printer.print_string(text)
                bound(kind)
        if self.outputs:
            printer.print_string(" shared_outs(")
            for position, (argument, value) in enumerate(zip(arguments[loops:], self.outputs)):
                printer.print_string(", " if position else "")
                printer.print_ssa_value(argument)
                printer.print_string(" = ")
                printer.print_ssa_value(value)
            printer.print_string(") -> (")
            printer.print_list([result.type for result in self.res], printer.print_attribute)
            printer.print_string(")")
        last = self.region.block.last_op
        show_last = isinstance(last, InParallelOp) and bool(
            last.region.block.ops or last.attributes
        )
        printer.print_string(" ")
        printer.print_region(
            self.region, print_entry_block_args=False, print_block_terminators=show_last
        )
        attributes = dict(self.attributes)
        if self.mapping is not None:
            attributes["mapping"] = self.mapping
        printer.print_op_attributes(attributes)

    def verify_(self) -> None:
        self._verify_bounds()
        loops = self.num_loops
        wanted = [*[IndexType()] * loops, *(value.type for value in self.outputs)]
        if [arg.type for arg in self.region.block.args] != wanted:
            raise VerifyException(
                "expected one index argument per loop, then one per shared output, of its type"
            )
        if [result.type for result in self.res] != [value.type for value in self.outputs]:
            raise VerifyException("expected the results to have the types of the shared outputs")
        if any(not isinstance(value.type, TensorType) for value in self.outputs):
            raise VerifyException("expected shared outputs to be tensors")
        if not isinstance(self.region.block.last_op, InParallelOp):
            raise VerifyException("expected the body to end in scf.forall.in_parallel")
        if self.mapping is not None and len(self.mapping) != loops:
            raise VerifyException("mapping attribute size must match op rank")

    def _verify_bounds(self) -> None:
        """Checks the numbers of the lower and upper bounds and of the steps."""
        for kind in ("LowerBound", "UpperBound", "Step"):
            static = self.properties[f"static{kind}"].get_values()  # type: ignore[attr-defined]
            if len(static) != self.num_loops:
                raise VerifyException("expected as many lower bounds and steps as upper bounds")
            verify_dynamic_index_list(
                static, getattr(self, f"dynamic{kind}"), DYNAMIC_INDEX, f" in {kind}"
            )
        if any(step <= 0 and step != DYNAMIC_INDEX for step in self.staticStep.get_values()):
            raise VerifyException("expected steps to be positive")


def _parse_parallel(cls: type[scf.ParallelOp], parser: Parser) -> scf.ParallelOp:
    start = parser.pos

    def operands() -> Sequence[SSAValue]:
        found = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        return parser.resolve_operands(found, [IndexType()] * len(found), start)

    names = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
    )
    parser.parse_punctuation("=")
    lower = operands()
    parser.parse_keyword("to")
    upper = operands()
    parser.parse_keyword("step")
    step = operands()
    inits: list = []
    if parser.parse_optional_keyword("init"):
        inits = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
    types: Sequence[Attribute] = ()
    if parser.parse_optional_punctuation("->"):
        found = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_type
        )
        types = [parser.parse_type()] if found is None else found
    if len(types) != len(inits):
        parser.raise_error("expected one result type per init value", start, parser.pos)
    values = parser.resolve_operands(inits, types, start)
    region = parser.parse_region([name.resolve(IndexType()) for name in names])
    attributes = parser.parse_optional_attr_dict()
    if region.block.last_op is None or not isinstance(region.block.last_op, scf.ReduceOp):
        region.block.add_op(scf.ReduceOp())
    op = cls(lower, upper, step, region, values)
    op.attributes |= attributes
    return op


def _print_parallel(op: scf.ParallelOp, printer: Printer) -> None:
    printer.print_string(" ")
    with printer.in_parens():
        printer.print_list(op.body.block.args, printer.print_ssa_value)
    for text, values in ((" = ", op.lowerBound), (" to ", op.upperBound), (" step ", op.step)):
        printer.print_string(text)
        with printer.in_parens():
            printer.print_list(values, printer.print_ssa_value)
    if op.initVals:
        printer.print_string(" init ")
        with printer.in_parens():
            printer.print_list(op.initVals, printer.print_ssa_value)
        printer.print_string(" -> ")
        if len(op.res) == 1:
            printer.print_attribute(op.res[0].type)
        else:
            with printer.in_parens():
                printer.print_list([result.type for result in op.res], printer.print_attribute)
    printer.print_string(" ")
    printer.print_region(op.body, print_entry_block_args=False)
    printer.print_op_attributes(op.attributes)


def _parse_types(parser: Parser) -> list[Attribute]:
    """Parses `(t, t)`, or `t` for a single result, which xDSL does not accept."""
    found = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if found is None else found


def _parse_if(cls: type[scf.IfOp], parser: Parser) -> scf.IfOp:
    condition = parser.parse_operand(i1)
    types = _parse_types(parser) if parser.parse_optional_punctuation("->") else []
    yes = cls.parse_region_with_yield(parser)
    no = Region()
    if parser.parse_optional_keyword("else"):
        no = cls.parse_region_with_yield(parser)
    return cls(condition, types, yes, no, parser.parse_optional_attr_dict())


def _parse_for(cls: type[scf.ForOp], parser: Parser) -> scf.ForOp:
    counter = parser.parse_argument(expect_type=False)
    bounds: list[UnresolvedOperand] = []
    for word in ("=", "to", "step"):
        if word == "=":
            parser.parse_punctuation("=")
        else:
            parser.parse_keyword(word)
        bounds.append(parser.parse_unresolved_operand())
    start = parser.pos
    pairs: list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]] = []
    types: list[Attribute] = []
    if parser.parse_optional_keyword("iter_args"):
        pairs = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parse_assignment(parser)
        )
        parser.parse_punctuation("->")
        types = _parse_types(parser)
    starts = parser.resolve_operands([value for _, value in pairs], types, start)
    carried = [argument.resolve(type_) for (argument, _), type_ in zip(pairs, types)]
    kind = parser.parse_type() if parser.parse_optional_punctuation(":") else IndexType()
    lower, upper, step = (parser.resolve_operand(each, kind) for each in bounds)
    body = parser.parse_region((counter.resolve(kind), *carried))
    op = cls(lower, upper, step, starts, body)
    op.attributes |= parser.parse_optional_attr_dict()
    if not carried:
        for trait in op.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(op, trait)
    return op


def _parse_reduce(cls: type[scf.ReduceOp], parser: Parser) -> scf.ReduceOp:
    start, values = parser.pos, []
    if parser.parse_optional_punctuation("("):
        values = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation(")")
        values = parser.resolve_operands(values, types, start)
    regions: list[Region] = []
    if (first := parser.parse_optional_region()) is not None:
        regions.append(first)
        while parser.parse_optional_punctuation(","):
            regions.append(parser.parse_region())
    op = cls(values, regions)
    op.attributes |= parser.parse_optional_attr_dict()
    return op


def _print_reduce(op: scf.ReduceOp, printer: Printer) -> None:
    if op.args:
        with printer.in_parens():
            printer.print_list(op.args, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list(op.args.types, printer.print_attribute)
    printer.print_string(" " if op.reductions else "")
    printer.print_list(op.reductions, printer.print_region)
    printer.print_op_attributes(op.attributes)


@cache
def patch() -> None:
    """Adds the syntax of `scf.parallel` and completes that of `if`, `for` and `reduce`, once."""
    scf.IfOp.parse = classmethod(_parse_if)
    scf.ForOp.parse = classmethod(_parse_for)
    scf.ParallelOp.parse = classmethod(_parse_parallel)
    scf.ParallelOp.print = _print_parallel
    scf.ReduceOp.parse = classmethod(_parse_reduce)
    scf.ReduceOp.print = _print_reduce


OPS = (ForallOp, InParallelOp)
