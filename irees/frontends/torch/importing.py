"""
Imports a PyTorch graph as ops on tensors; each node uses its lowering or its decomposition.

`GraphImporter` visits nodes in order and keeps the value of each: a builder's Tensor, a size, a
number or a tuple. The same importer visits subgraphs of higher-order operators and decompositions,
each with its own environment.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves, tree_map
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import SSAValue

from irees.errors import IreesError, UnsupportedError

from ..builder import Builder, Tensor
from ..builder.dtypes import BOOL, F64, I64
from . import lowerings
from .calls import Call, NotLowered, Symbolic, arrange, lowering_of
from .constants import Constants
from .decomposing import Traces, decomposed, is_input
from .lines import users_frame
from .symbols import Symbols

lowerings.load()
_IGNORED = {"_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size"}


def unused_results(node: torch.fx.Node) -> frozenset[int]:
    """The numbers of a node's results without uses."""
    value = node.meta.get("val")
    if not isinstance(value, list | tuple):
        return frozenset()
    if not all(user.target is operator.getitem for user in node.users):
        return frozenset()
    used = {user.args[1] for user in node.users if user.users}
    return frozenset(i for i in range(len(value)) if i not in used)


def fake_of(value: Any) -> Any:
    """The argument of a node with nodes replaced by their fake tensors or numbers."""
    return map_arg(value, lambda node: node.meta.get("val"))


def is_failed(node: torch.fx.Node) -> bool:
    """Whether a node is what is left of a call that raised an error, which the program caught."""
    schema = getattr(node.target, "_schema", None)
    return bool(schema and schema.returns) and not node.users and node.meta.get("val") is None


class GraphImporter:
    """Imports graphs; appends all ops to the builder's block."""

    def __init__(self, builder: Builder):
        self.b = builder
        self.symbols = Symbols(builder)
        self.constants = Constants(builder)
        self._locations: dict[str, LocationAttr | None] = {}
        self.seeds: list[SSAValue] = []
        self.bases: dict[SSAValue, tuple[Tensor, torch.Tensor]] = {}
        """For each view: the tensor that owns its storage, and that tensor's fake."""
        self.traces: Traces = {}
        """Decompositions of operators on symbolic shapes."""
        self._entry = builder.block

    def run(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        """Imports a graph for these values of its placeholders and returns its outputs."""
        env: dict[torch.fx.Node, Any] = {}
        given = iter(inputs)
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "get_attr":
                env[node] = self._attribute(graph_module, str(node.target))
            elif node.op == "output":
                return self._argument(node.args[0], env)
            else:
                env[node] = self._node(node, env)
        return None

    def new_seed(self) -> SSAValue:
        """Adds a function argument for the seed of one random operator."""
        self.seeds.append(self._entry.insert_arg(I64.element, len(self._entry.args)))
        return self.seeds[-1]

    # --- values ---

    def _attribute(self, module: Any, path: str) -> Any:
        value = module
        for name in path.split("."):
            value = getattr(value, name)
        if isinstance(value, torch.Tensor):
            return self.constants.of(value, path)
        return value

    def _argument(self, value: Any, env: dict[torch.fx.Node, Any]) -> Any:
        """The argument of a node with nodes replaced by their values."""
        found = map_arg(value, lambda node: env[node])
        return tree_map(self._symbolic, found)

    def _symbolic(self, value: Any) -> Any:
        if isinstance(value, torch.SymInt):
            return self.symbols.size(value)
        if isinstance(value, torch.SymFloat | torch.SymBool):
            return self._sym_scalar(value)
        if isinstance(value, torch.Tensor):
            return self.constants.of(value, "literal")
        return value

    def _sym_scalar(self, value: Any) -> Any:
        expr = value.node.expr
        if isinstance(value, torch.SymBool) and str(expr) in ("True", "False"):
            return bool(expr)
        if isinstance(value, torch.SymFloat):
            return float(expr) if expr.is_number else Symbolic(self.symbols._float(value), F64)
        return Symbolic(self.symbols.condition(value), BOOL)

    # --- nodes ---

    def _node(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any]) -> Any:
        self.b.location = self.location(node)
        try:
            return self._lower(node, env)
        except IreesError as error:
            if error.location is None and self.b.location is not None:
                again = type(error)(
                    error.message, location=self.b.location, op=error.op, hint=error.hint
                )
                raise again from error
            raise

    def _lower(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any]) -> Any:
        target, value = node.target, node.meta.get("val")
        if target is operator.getitem:
            return self._argument(node.args[0], env)[node.args[1]]
        name = getattr(getattr(target, "_schema", None), "name", "").split("::")[-1]
        if name in _IGNORED or is_failed(node):
            return None
        if isinstance(target, torch._ops.HigherOrderOperator):
            from .control import lower_higher_order

            return lower_higher_order(self, node, env)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool) and self.is_known(
            value
        ):
            return self._symbolic(value)
        if not isinstance(target, torch._ops.OpOverload):
            return self._python(node, env)
        args, kwargs = self._argument((node.args, node.kwargs), env)
        fakes = fake_of((node.args, node.kwargs))
        return self.operator(target, args, kwargs, fakes, value, unused_results(node))

    def is_known(self, value: Any) -> bool:
        """Whether all symbols of a symbolic number are bound."""
        try:
            return all(s in self.symbols.bound for s in value.node.expr.free_symbols)
        except AttributeError:
            return True

    def _python(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any]) -> Any:
        """Evaluates a Python operator on constants."""
        name = getattr(node.target, "__name__", str(node.target))
        args = self._argument(node.args, env)
        if not all(isinstance(a, int | float | bool | SSAValue | Symbolic) for a in args):
            raise UnsupportedError(
                f"the Python function {name} in PyTorch's graph is not supported"
            )
        if all(isinstance(a, int | float | bool) for a in args):
            return node.target(*args)  # type: ignore[operator]
        raise UnsupportedError(f"{name} of numbers that are computed at run time is not supported")

    def operator(
        self, target: Any, args: Any, kwargs: Any, fakes: Any, value: Any,
        unused: frozenset[int] = frozenset(),
    ) -> Any:  # fmt: skip
        """Lowers an operator with its lowering, or else with its decomposition."""
        function = lowering_of(target)
        if function is not None:
            raw, _ = arrange(target, function, *fakes)
            call = Call(
                self.b, self.symbols, target, raw, fakes[1], value,
                unused=unused, bases=self.bases, new_seed=self.new_seed,
            )  # fmt: skip
            positional, named = arrange(target, function, args, kwargs)
            try:
                result = self._conform(function(call, *positional, **named), value)
            except NotLowered:
                pass
            else:
                fake_results = [t for t in tree_leaves(value) if isinstance(t, torch.Tensor)]
                self._note_base(target, positional, raw, result, fake_results)
                return result
        return self._conform(self._decompose(target, args, kwargs, fakes), value)

    def _note_base(
        self, target: Any, args: Any, fakes: Any, result: Any, values: list[torch.Tensor]
    ) -> None:
        """Records the tensor that owns a view's storage. `values` are the fakes of the results."""
        first = target._schema.arguments[0].alias_info if target._schema.arguments else None
        is_view = target is torch.ops.aten._unsafe_view.default or (first and not first.is_write)
        if not is_view or not isinstance(args[0], Tensor):
            return
        base = self.bases.get(args[0].value, (args[0], fakes[0]))
        # `contiguous` and `reshape` are views only if they need no copy.
        shares = all(t.untyped_storage()._cdata == base[1].untyped_storage()._cdata for t in values)
        for each in result if isinstance(result, tuple) else (result,):
            if isinstance(each, Tensor) and each.value is not base[0].value and shares:
                self.bases[each.value] = base

    def _decompose(self, target: Any, args: Any, kwargs: Any, fakes: Any) -> Any:
        try:
            graph = decomposed(target, *fakes, self.traces)
        except IreesError:
            raise
        except Exception as error:
            raise self.no_lowering(target, fakes, f": {type(error).__name__}: {error}") from error
        if graph is None:
            raise self.no_lowering(target, fakes)
        from torch.utils._pytree import tree_flatten

        leaves = tree_flatten((args, kwargs))[0]
        originals = tree_flatten(fakes)[0]
        inputs = [mine for mine, fake in zip(leaves, originals, strict=True) if is_input(fake)]
        saved = self.b.location
        location, self.location_of_decomposition = self.location_of_decomposition, saved
        try:
            return self.run(graph, inputs)
        finally:
            self.location_of_decomposition = location
            self.b.location = saved

    location_of_decomposition: LocationAttr | None = None

    def no_lowering(self, target: Any, fakes: Any, why: str = "") -> UnsupportedError:
        """The error for an operator without a lowering, with its operands' dtypes."""
        from torch.utils._pytree import tree_flatten

        kinds = [
            str(x.dtype).removeprefix("torch.")
            for x in tree_flatten(fakes)[0]
            if isinstance(x, torch.Tensor)
        ]
        reason = " ".join(why.split())[:300]
        return UnsupportedError(
            f"operator {target} of {', '.join(kinds) or 'no tensors'} has no lowering{reason}"
        )

    def _conform(self, result: Any, value: Any) -> Any:
        """Gives results the dims that PyTorch traced; binds symbols that first occur here."""
        if isinstance(result, Tensor) and isinstance(value, torch.Tensor):
            return self._conform_tensor(result, value)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return self._bind_number(result, value)
        if isinstance(result, tuple | list) and isinstance(value, tuple | list):
            return tuple(self._conform(r, v) for r, v in zip(result, value))
        return result

    def _bind_number(self, result: Any, value: Any) -> Any:
        expr = value.node.expr
        if expr.is_Symbol:
            self.symbols.bind(expr, result.value if isinstance(result, Symbolic) else result)
        elif isinstance(value, torch.SymBool) and isinstance(result, Symbolic):
            self.symbols.bound.setdefault(expr, result.value)
            for symbol in expr.free_symbols:
                self.symbols.bind(symbol, self._as_size(result))
        return result

    def _as_size(self, result: Symbolic) -> SSAValue:
        from ..builder.dtypes import INDEX

        return self.b.compute(lambda v: v.to(INDEX), (result.value, result.dtype)).value

    def _conform_tensor(self, result: Tensor, value: torch.Tensor) -> Tensor:
        if result.rank != value.dim():
            raise UnsupportedError(
                f"PyTorch traced a result of rank {value.dim()} that has rank {result.rank}"
            )
        for size, dim in zip(result.shape, value.shape):
            expr = getattr(getattr(dim, "node", None), "expr", None)
            if expr is not None and expr.is_Symbol and expr not in self.symbols.bound:
                self.symbols.bind(expr, size)
        shape = [
            self.symbols.size(dim) if self.symbols.is_known(dim) else size
            for size, dim in zip(result.shape, value.shape)
        ]
        return self.b.with_shape(result, shape)

    # --- locations ---

    def location(self, node: torch.fx.Node) -> LocationAttr | None:
        """The user's Python line: the innermost stack frame outside of PyTorch and irees."""
        if self.location_of_decomposition is not None:
            return self.location_of_decomposition
        trace = node.meta.get("stack_trace")
        if not trace:
            return self.b.location
        if trace not in self._locations:
            frame = users_frame(trace)
            self._locations[trace] = frame and FileLineColLoc(
                StringAttr(frame[0]), IntAttr(frame[1]), IntAttr(0)
            )
        return self._locations[trace]
