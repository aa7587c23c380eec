"""
Maps calls of the original Python function to calls of the compiled program.

A program takes arrays in order and returns arrays (the flat form). A `Signature` maps leaves of
nested arguments to flat arguments or compiled-in constants. It maps flat results to leaves of the
returned value, or to new values of arguments or of the program's state.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from irees.errors import ArgumentError, ParseError
from irees.runtime.objects import decoded, same
from irees.runtime.trees import (
    LEAF,
    Tree,
    check_tree,
    count_leaves,
    describe,
    flatten,
    leaf_paths,
    tree_of,
    unflatten,
)

STATE = "state:"
"""Name prefix of the constants that hold the state of a saved program."""


class State(dict[str, np.ndarray[Any, Any]]):
    """
    The arrays that a program updates, by name. Setting an item copies the value into the array;
    the set of names is fixed.
    """

    def __setitem__(self, name: str, value: Any) -> None:
        """Raises ArgumentError for an unknown name, or a value of another shape or dtype."""
        if name not in self:
            known = ", ".join(self) or "no state"
            raise ArgumentError(f"the program has no state {name!r}", hint=f"it has {known}")
        array = _as_numpy(value)
        mine = self[name]
        if array.shape != mine.shape or array.dtype != mine.dtype:
            raise ArgumentError(
                f"state {name!r} is {array.dtype}{list(array.shape)}, but must be "
                f"{mine.dtype}{list(mine.shape)}"
            )
        np.copyto(mine, array)

    def __delitem__(self, name: str) -> None:
        raise ArgumentError("a program's state cannot be deleted")


Leaf = Mapping[str, Any]
"""
`{"argument": i}`, `{"result": i}`, `{"constant": value}` or `{"ignored": true}`. A constant is JSON
of `irees.runtime.objects`; one that is not plain has its Python form as `shown`.
"""


@dataclass(frozen=True)
class Signature:
    """
    The calling convention of a program.

    `positional` and `named` are trees of the arguments given by position and by name.
    `parameters` are all parameter names in order, `defaults` the default values as JSON.
    `inputs` describes each leaf of the arguments, `outputs` is the tree of the returned value and
    `results` describes its leaves. `updates` are pairs of a result and the argument that it
    updates. `states` are the names of state arguments, which follow the caller's, each with the
    result that updates it, or -1. `seeds` is the number of random seeds that follow those, drawn
    for each call from the generator of PyTorch, or of numpy without it.
    """

    positional: tuple[Tree, ...]
    named: dict[str, Tree]
    parameters: tuple[str, ...]
    defaults: dict[str, Any]
    inputs: tuple[Leaf, ...]
    outputs: Tree
    results: tuple[Leaf, ...]
    updates: tuple[tuple[int, int], ...] = ()
    states: tuple[tuple[str, int], ...] = ()
    seeds: int = 0
    origin: str = "torch"
    variadic: bool = field(default=False)

    # --- as data ---

    def record(self) -> dict[str, Any]:
        """The signature as JSON."""
        return {
            "positional": list(self.positional),
            "named": self.named,
            "parameters": list(self.parameters),
            "defaults": self.defaults,
            "inputs": [dict(leaf) for leaf in self.inputs],
            "outputs": self.outputs,
            "results": [dict(leaf) for leaf in self.results],
            "updates": [list(pair) for pair in self.updates],
            "states": [list(pair) for pair in self.states],
            "seeds": self.seeds,
            "origin": self.origin,
            "variadic": self.variadic,
        }

    @staticmethod
    def read(record: Any, arguments: int, results: int) -> Signature | None:
        """
        Reads the signature of a manifest, None if there is none.

        Raises ParseError if it does not fit the function's number of arguments and results.
        """
        if record is None:
            return None
        try:
            found = Signature(
                tuple(record["positional"]), dict(record["named"]), tuple(record["parameters"]),
                dict(record["defaults"]), tuple(map(dict, record["inputs"])), record["outputs"],
                tuple(map(dict, record["results"])),
                tuple((int(a), int(b)) for a, b in record["updates"]),
                tuple((str(a), int(b)) for a, b in record["states"]),
                int(record["seeds"]), str(record["origin"]), bool(record["variadic"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):
            raise ParseError("the manifest's 'signature' lacks a field") from None
        found.check(arguments, results)
        return found

    def check(self, arguments: int, results: int) -> None:
        """Raises ParseError unless all argument and result numbers are valid."""
        for tree in (*self.positional, *self.named.values(), self.outputs):
            check_tree(tree)
        given = sum(map(count_leaves, (*self.positional, *self.named.values())))
        ends = [leaf.get("argument", 0) for leaf in (*self.inputs, *self.results)]
        ends += [argument for _, argument in self.updates]
        made = [leaf.get("result", 0) for leaf in self.results]
        made += [result for result, _ in self.updates] + [max(r, 0) for _, r in self.states]
        fits = (
            given == len(self.inputs)
            and count_leaves(self.outputs) == len(self.results)
            and all(isinstance(i, int) and 0 <= i < max(arguments, 1) for i in ends)
            and all(isinstance(i, int) and 0 <= i < max(results, 1) for i in made)
        )
        if not fits:
            raise ParseError("the manifest's 'signature' does not fit its function")

    # --- calls ---

    @cached_property
    def paths(self) -> list[str]:
        """The Python expression of each leaf of the arguments."""
        found: list[str] = []
        for i, tree in enumerate(self.positional):
            name = self.parameters[i] if i < len(self.parameters) else f"args[{i}]"
            found += leaf_paths(tree, name)
        for name, tree in self.named.items():
            found += leaf_paths(tree, name)
        return found

    @cached_property
    def argument_names(self) -> dict[int, str]:
        """Flat argument number => Python expression of its leaf."""
        return {
            leaf["argument"]: path
            for leaf, path in zip(self.inputs, self.paths)
            if "argument" in leaf
        }

    def _label(self, number: int) -> str:
        return f"argument {number} ({self.argument_names[number]!r})"

    @cached_property
    def _plain(self) -> int:
        """Number of arguments if all are arrays given by position, else -1."""
        trees = (*self.positional, *self.named.values())
        in_order = [leaf.get("argument") for leaf in self.inputs] == list(range(len(trees)))
        return len(trees) if all(t == LEAF for t in trees) and in_order and not self.named else -1

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Returns the flat arguments of a call. Raises ArgumentError."""
        if not kwargs and len(args) == self._plain:
            return list(args)
        leaves: list[Any] = []
        for tree, value, name in self._match(args, kwargs):
            flatten(tree, value, leaves, name)
        found: dict[int, Any] = {}
        for leaf, value, path in zip(self.inputs, leaves, self.paths, strict=True):
            if "argument" in leaf:
                found[leaf["argument"]] = value
            elif "constant" in leaf:
                _check_constant(value, leaf, path)
        return [found[i] for i in range(len(found))]

    def _match(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[Tree, Any, str]]:
        """Matches each tree with its value, given by position or name. Raises ArgumentError."""
        kwargs = dict(kwargs)
        pairs: list[tuple[Tree, Any, str]] = []
        if len(args) > max(len(self.positional), len(self.parameters)):
            raise self._wrong(args, kwargs)
        for i, tree in enumerate(self.positional):
            name = self.parameters[i] if i < len(self.parameters) else f"args[{i}]"
            if i < len(args):
                if name in kwargs:
                    raise ArgumentError(f"argument {name!r} is given twice")
                pairs.append((tree, args[i], name))
            else:
                pairs.append((tree, self._named(name, args, kwargs), name))
        extra = dict(zip(self.parameters[len(self.positional) :], args[len(self.positional) :]))
        for name, value in extra.items():
            if name in kwargs:
                raise ArgumentError(f"argument {name!r} is given twice")
            kwargs[name] = value
        for name, tree in self.named.items():
            pairs.append((tree, self._named(name, args, kwargs), name))
        for name, value in kwargs.items():
            self._check_left_out(name, value, args, kwargs)
        return pairs

    def _named(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Takes an argument out of `kwargs`; the default if that was compiled in."""
        if name not in kwargs and name in self._constants and name in self.defaults:
            return decoded(self.defaults[name])
        if name not in kwargs:
            raise self._wrong(args, kwargs, name)
        return kwargs.pop(name)

    @cached_property
    def _constants(self) -> frozenset[str]:
        """The parameters without an array in their trees."""
        leaves, found = iter(self.inputs), set()
        for name, tree in (*zip(self.parameters, self.positional), *self.named.items()):
            own = itertools.islice(leaves, count_leaves(tree))
            if not any(["argument" in leaf for leaf in own]):
                found.add(name)
        return frozenset(found)

    def _check_left_out(
        self, name: str, value: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Raises ArgumentError unless an argument that was not compiled in has its default."""
        if name not in (*self.parameters, *self.defaults) and not self.variadic:
            raise self._wrong(args, kwargs)
        if name not in self.defaults or not same(value, self.defaults[name]):
            shown = repr(value) if isinstance(value, int | float | str | None) else type(value)
            raise ArgumentError(
                f"argument {name!r} is {shown}, but the program was compiled without this argument",
                hint="give it to irees.compile as well",
            )

    def _wrong(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], missing: str | None = None
    ) -> ArgumentError:
        """An error that shows the given and the expected arguments."""
        given = [describe(tree_of(a)) for a in args]
        given += [f"{name}={describe(tree_of(v))}" for name, v in kwargs.items()]
        lack = f"argument {missing!r} is missing: " if missing else ""
        return ArgumentError(f"{lack}the program takes {self}, but is given ({', '.join(given)})")

    def __str__(self) -> str:
        parts = [
            f"{self.parameters[i] if i < len(self.parameters) else f'args[{i}]'}: {describe(tree)}"
            for i, tree in enumerate(self.positional)
        ]
        parts += [f"{name}: {describe(tree)}" for name, tree in self.named.items()]
        return f"({', '.join(parts)})"

    @cached_property
    def _order(self) -> list[int] | None:
        """The flat result of each leaf of the returned value, None if some are not results."""
        numbers = [leaf["result"] for leaf in self.results if "result" in leaf]
        return numbers if len(numbers) == len(self.results) else None

    def assemble(self, results: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """Builds the returned value from the flat results and the arguments."""
        if (order := self._order) is not None:
            if self.outputs == LEAF:
                return results[order[0]]
            return unflatten(self.outputs, iter([results[number] for number in order]))

        def leaf(said: Leaf) -> Any:
            if "result" in said:
                return results[said["result"]]
            if "argument" in said:
                return leaves[said["argument"]]
            return decoded(said.get("constant"))

        if self.outputs == LEAF:
            return leaf(self.results[0])
        return unflatten(self.outputs, map(leaf, self.results))

    def run(
        self, flat: Callable[[Sequence[Any]], list[Any]], state: Mapping[str, Any],
        args: Sequence[Any], kwargs: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        """
        Calls the flat form with the leaves of the arguments and the state, writes updated
        arguments and state in place, and returns the function's value. Raises the errors of the
        flat form.
        """
        leaves = self.bind(args, kwargs)
        if self._is_pure:
            return self.assemble(self._as_given(flat(leaves), leaves), leaves)
        results = flat(self._completed(leaves, state))
        copied = [argument for result, argument in self.updates if results[result] is not None]
        if copied:
            from irees.runtime.updates import refuse_aliases

            # What the program wrote in place was checked before it ran.
            refuse_aliases(copied, leaves, self._label)
            # An interpreted program may return views of arguments that are about to change.
            results = [r.copy() if isinstance(r, np.ndarray) else r for r in results]
        results = self._as_given(results, leaves)
        for result, argument in self.updates:
            if results[result] is None:
                continue  # the program wrote it in place
            write_into(leaves[argument], results[result], self.argument_names[argument])
        for name, result in self.states:
            if result >= 0 and results[result] is not None:
                np.copyto(state[name], _as_numpy(results[result]))
        return self.assemble(results, leaves)

    def flat(
        self, state: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[Any]:
        """The arguments of the flat form of a call. Raises ArgumentError for a wrong structure."""
        return self._completed(self.bind(args, kwargs), state)

    def _completed(self, leaves: list[Any], state: Mapping[str, Any]) -> list[Any]:
        states = [state[name] for name, _ in self.states]
        return [*leaves, *states, *draw_seeds(self.seeds)]

    @cached_property
    def _is_pure(self) -> bool:
        """Whether a call is the flat form on the leaves, and updates nothing."""
        return not (self.updates or self.states or self.seeds)

    def _as_given(self, results: Sequence[Any], leaves: Sequence[Any]) -> Sequence[Any]:
        """Results as torch tensors, for a function of torch without numpy arguments."""
        for result in results:
            if isinstance(result, np.ndarray):
                break
        else:
            return results
        torch = sys.modules.get("torch") if self.origin == "torch" else None
        if torch is None or any(isinstance(leaf, np.ndarray) for leaf in leaves):
            return results
        return [_as_torch(torch, result) for result in results]


def draw_seeds(count: int) -> list[int]:
    """Draws 64-bit seeds from PyTorch's generator if it is imported, else from numpy's."""
    if not count:
        return []
    if (torch := sys.modules.get("torch")) is not None:
        return torch.randint(-(2**63), 2**63 - 1, (count,)).tolist()
    return np.random.randint(-(2**63), 2**63 - 1, count, np.int64).tolist()


def _check_constant(value: Any, leaf: Leaf, path: str) -> None:
    if not same(value, leaf["constant"]):
        wanted = leaf.get("shown") or repr(leaf["constant"])
        raise ArgumentError(
            f"{path} is {value!r}, but the program was compiled for {wanted}",
            hint="compile it again for another value, or pass a tensor",
        )


def _as_torch(torch: Any, value: Any) -> Any:
    from irees.runtime.program import to_torch

    return to_torch(value) if isinstance(value, np.ndarray) else value


def _as_numpy(value: Any) -> np.ndarray[Any, Any]:
    from irees.runtime.arguments import numpy_of

    return numpy_of(value)


def write_into(target: Any, value: Any, path: str) -> None:
    """Copies a new value into an argument. Raises ArgumentError if it is not writable."""
    from irees.runtime.arguments import refuse_overlap

    if isinstance(target, np.ndarray) or hasattr(target, "stride"):
        refuse_overlap(target, path)
    try:
        if isinstance(target, np.ndarray):
            np.copyto(target, _as_numpy(value))
        else:
            torch = sys.modules["torch"]
            with torch.no_grad():
                target.copy_(value if isinstance(value, torch.Tensor) else _as_torch(torch, value))
    except (ValueError, RuntimeError, AttributeError) as error:
        raise ArgumentError(
            f"{path} is written to by the program, but is not writable: {error}"
        ) from None
