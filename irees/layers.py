"""
Compiles equal layers once.

Compiling a network of 80 equal layers would run the tensor phases on 80 times the ops of a layer,
only to deduplicate the kernels at the end. So `shorten` makes a program with HEAD + TAIL of the
layers. The tensor phases run on it as a whole, so ops fuse across layers. `extend` then finds the
dispatches of one layer in the result, and inserts copies with the weights of the omitted layers.

    layers:      1 2 3 4 .. 79 80    shorten    1 2 79 80
    dispatches:  a b b' b' .. b' c   extend     a b b' c

The result equals that of the whole program, because passes are local and treat all weights alike:

* the dispatches of two successive layers must be equal as defined by `irees.analysis.repetition`,
  and their weights must be the corresponding weights of the two layers;
* no pass may have read a weight of a layer. A weight that a pass derives from others is a recipe
  (`irees.blobs`), which `extend` applies to the weights of the other layers.

Otherwise all phases run on the whole program. Inserted ops have the locations of the layer that
they were copied from, and remarks cover only the compiled layers.
Constants that happen to be equal in all layers, as in an untrained network, are not merged: their
bytes are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    DenseResourceAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.repetition import Run, Sequence, weight_of
from irees.blobs import Blob
from irees.dialects.flow import DispatchOp, ExecutableOp
from irees.dialects.resources import resource_attr

HEAD, TAIL = 2, 2
"""Layers kept at the start and at the end: the first and last layers have other neighbours."""
FEWEST = 3
"""Minimum number of omitted layers for the search and the copies to pay off."""


@dataclass
class Weights:
    """The weights that differ between layers, by layer and number in the layer."""

    table: list[list[Blob]]
    places: dict[Blob, tuple[int, int]]
    order: dict[Blob, int]
    """Position of each weight in the order in which the whole program defines them."""

    @staticmethod
    def of(sequence: Sequence, run: Run) -> Weights | None:
        """
        Returns the weights of the layers of a run. Returns None if layers share a weight that
        otherwise varies, or if no weight varies.
        """
        rows = [list(weights_in(sequence, layer(run, n))) for n in range(run.repeats)]
        first, second = rows[0], rows[1]
        slots: dict[Blob, int] = {}
        for number, (own, next_) in enumerate(zip(first, second, strict=True)):
            if own is not next_:
                slots.setdefault(own, number)
        table = [[row[slot] for slot in slots.values()] for row in rows]
        places = {blob: (n, i) for n, row in enumerate(table) for i, blob in enumerate(row)}
        if not slots or len(places) != len(rows) * len(slots):
            return None
        for row, found in zip(rows, table, strict=True):
            moved = dict(zip(slots, found, strict=True))
            if any(moved.get(own, own) is not other for own, other in zip(first, row, strict=True)):
                return None
        return Weights(table, places, {})

    def moved(self, blob: Blob, layers: int) -> Blob:
        """Returns the blob that corresponds to a layer's blob in a layer `layers` later."""
        if (place := self.places.get(blob)) is not None:
            return self.table[place[0] + layers][place[1]]
        recipe = blob.recipe
        if recipe is None or not self.layers_of(blob):
            return blob
        sources = tuple(self.moved(source, layers) for source in recipe.sources)
        own = "_".join((sources[0].key, blob.key.removeprefix(f"{recipe.sources[0].key}_")))
        return Blob(own, recipe=replace(recipe, sources=sources))

    def layers_of(self, blob: Blob) -> set[int]:
        """Returns the layers whose weights a blob is computed from."""
        if (place := self.places.get(blob)) is not None:
            return {place[0]}
        sources = () if blob.recipe is None else blob.recipe.sources
        return set[int]().union(*map(self.layers_of, sources))

    def are_unread(self) -> bool:
        """Whether no pass has read a weight of a layer."""
        return not any(blob.was_read for blob in self.places)

    def follows(self, former: Blob, latter: Blob) -> bool:
        """Whether `latter` corresponds to `former` in the next kept layer."""
        if (place := self.places.get(former)) is not None:
            after = place[0] + 1
            next_ = after if after != HEAD else len(self.table) - TAIL
            return next_ < len(self.table) and self.table[next_][place[1]] is latter
        if former is latter:
            return True
        own, other = former.recipe, latter.recipe
        if own is None or other is None or (own.name, own.dtype) != (other.name, other.dtype):
            return False
        pairs = zip(own.sources, other.sources, strict=True)
        return own.shape == other.shape and all(self.follows(a, b) for a, b in pairs)


def weights_in(sequence: Sequence, numbers: Iterable[int]) -> Iterator[Blob]:
    """Yields the weights that ops use, in order."""
    for number in numbers:
        for value in sequence.operands(number):
            if (blob := weight_of(value)) is not None:
                yield blob


def layer(run: Run, number: int) -> range:
    """Returns the numbers of the ops of a layer."""
    begin = run.start + number * run.period
    return range(begin, begin + run.period)


@dataclass
class Shortened:
    """A program with few of its layers, and the data to restore the others."""

    module: ModuleOp
    weights: Weights
    left_out: int

    def extend(self) -> bool:
        """
        Restores the omitted layers in place, once the program consists of dispatches. Returns
        whether that was possible; otherwise the caller must discard the module.
        """
        if not self.weights.are_unread():
            return False
        function = sole_function(self.module)
        assert function is not None
        sequence = Sequence(function.body.block)
        run = sequence.longest_run(self.weights.follows)
        if run is None or run.repeats < 2 or not self._fits(sequence, run):
            return False
        names = dispatched(sequence.ops)
        extension = Extension(sequence, run, self.weights, self.left_out)
        extension.insert()
        add_work(function, sequence, run, self)
        renumber(self.module, names, dispatched(extension.ops))
        return True

    def _fits(self, sequence: Sequence, run: Run) -> bool:
        """Whether the first layer of a run can be repeated, and the ops after it can be moved."""
        first = layer(run, 0)
        count = len(sequence.ops)
        if run.start == 0 or any(op.regions for op in sequence.ops[run.start : run.stop]):
            return False

        def layers(numbers: Iterable[int]) -> set[int]:
            found = map(self.weights.layers_of, weights_in(sequence, numbers))
            return set[int]().union(*found)

        before, own, after = layers(range(run.start)), layers(first), layers(range(run.stop, count))
        if not own or max(before | own) >= HEAD:
            return False
        if min(after, default=HEAD) < HEAD:
            return False
        uses = (v for n in range(run.stop, count) for v in sequence.operands(n))
        return not any(sequence.place(v) in first for v in uses)


class Extension:
    """Repeats the first layer of a run of dispatches."""

    def __init__(self, sequence: Sequence, run: Run, weights: Weights, times: int):
        self.sequence, self.run, self.weights = sequence, run, weights
        self.inserted = times * run.period
        self.ops: list[Operation] = list(sequence.ops)
        self._tops: dict[Blob, arith.ConstantOp] = {}
        self._block = sequence.ops[0].parent
        assert self._block is not None
        self._first = next(op for op in self._block.ops if not isinstance(op, arith.ConstantOp))
        for op in self._block.ops:
            if op is self._first:
                break
            if (blob := weight_of(op.results[0])) is not None:
                self._tops[blob] = op

    def insert(self) -> None:
        """Inserts the copies, and redirects the operands of the layers after them."""
        template = layer(self.run, 0)
        last = self.ops[template.stop - 1]
        clones: list[Operation] = []
        for number in range(template.stop, template.stop + self.inserted):
            copied = self.sequence.ops[template[(number - template.start) % self.run.period]]
            clones.append(copied.clone())
        for clone in reversed(clones):
            Rewriter.insert_op(clone, InsertPoint.after(last))
        self.ops[template.stop : template.stop] = clones
        replaced: set[Operation] = set()
        for number in range(template.stop, self.run.stop + self.inserted):
            op = self.ops[number]
            origin = template[(number - template.start) % self.run.period]
            for position, value in enumerate(self.sequence.operands(origin)):
                new = self._operand(origin, position, value, number)
                old = op.operands[position]
                if new is not None and new is not old:
                    op.operands[position] = new
                    if isinstance(old.owner, arith.ConstantOp):
                        replaced.add(old.owner)
        for constant in replaced:
            if not constant.result.uses:
                Rewriter.erase_op(constant)

    def _operand(self, origin: int, position: int, value: SSAValue, number: int) -> SSAValue | None:
        """
        Returns the operand of op `number` that corresponds to `value` of op `origin`; None to keep
        the current one.
        """
        distance = number - origin
        if (blob := weight_of(value)) is not None:
            wanted = self.weights.moved(blob, distance // self.run.period)
            held = weight_of(self.ops[number].operands[position])
            assert held is not None
            if held is wanted or same(held, wanted):
                return None
            return self._constant(wanted, value, self.ops[number])
        later = self.sequence.operands(origin + self.run.period)[position]
        if later is value or not isinstance(value, OpResult):
            return None
        place = self.sequence.place(value)
        return None if place is None else self.ops[place + distance].results[value.index]

    def _constant(self, blob: Blob, like: SSAValue, user: Operation) -> SSAValue:
        """Returns a constant with this weight, placed like the constant `like`."""
        owner = like.owner
        assert isinstance(owner, arith.ConstantOp)
        assert isinstance(owner.value, DenseResourceAttr)
        if blob in self._tops and self._tops[blob].result.type == like.type:
            return self._tops[blob].result
        new = arith.ConstantOp(resource_attr(blob, owner.value.type))
        new.location = owner.location
        own = weight_of(like)
        if own is None or self._tops.get(own) is not owner:
            Rewriter.insert_op(new, InsertPoint.before(user))
            return new.result
        Rewriter.insert_op(new, InsertPoint.before(self._successor(blob)))
        self._tops[blob] = new
        return new.result

    def _successor(self, blob: Blob) -> Operation:
        """Returns the op before which the whole program defines the constant of a weight."""
        order = self.weights.order
        later = [b for b in self._tops if order.get(b, -1) > order.get(blob, -1)]
        return self._tops[min(later, key=order.__getitem__)] if later else self._first


def same(first: Blob, second: Blob) -> bool:
    """Whether two blobs are the same weight, or derived from the same weights by equal recipes."""
    own, other = first.recipe, second.recipe
    if first is second or own is None or other is None:
        return first is second
    if (own.name, own.dtype, own.shape) != (other.name, other.dtype, other.shape):
        return False
    return all(same(a, b) for a, b in zip(own.sources, other.sources, strict=True))


def sole_function(module: ModuleOp) -> func.FuncOp | None:
    """Returns the only op besides executables, if it is a function with a single block."""
    tops = [op for op in module.body.block.ops if not isinstance(op, ExecutableOp)]
    if len(tops) != 1 or not isinstance(tops[0], func.FuncOp):
        return None
    body = tops[0].body
    return tops[0] if body.blocks and body.first_block is body.last_block else None


def shorten(module: ModuleOp) -> Shortened | None:
    """Returns a copy of a program without most of its equal layers, or None if it has too few."""
    function = sole_function(module)
    if function is None or len(module.body.block.ops) != 1:
        return None
    sequence = Sequence(function.body.block)
    run = sequence.longest_run(lambda own, other: True)
    if run is None or run.repeats < HEAD + TAIL + FEWEST:
        return None
    left_out = run.repeats - HEAD - TAIL
    cut = range(layer(run, HEAD).start, layer(run, HEAD + left_out).start)
    weights = Weights.of(sequence, run)
    if weights is None or reaches_into(sequence, run, cut):
        return None
    constants = [op for op in function.body.block.ops if isinstance(op, arith.ConstantOp)]
    for number, op in enumerate(constants):
        if (blob := weight_of(op.result)) is not None:
            weights.order.setdefault(blob, number)
            blob.was_read = False
    small = ModuleOp([without(function, sequence, cut)], attributes=dict(module.attributes))
    return Shortened(small, weights, left_out)


def reaches_into(sequence: Sequence, run: Run, cut: range) -> bool:
    """Whether an op after the omitted layers uses one of them, except as its previous layer."""
    for number in range(cut.stop, len(sequence.ops)):
        for position, value in enumerate(sequence.operands(number)):
            if sequence.place(value) not in cut:
                continue
            former = (
                sequence.operands(number - run.period)[position] if number < run.stop else value
            )
            if not sequence.is_shifted(former, value, run.period):
                return True
    return False


def without(function: func.FuncOp, sequence: Sequence, cut: range) -> func.FuncOp:
    """Returns a copy of a function without the ops in `cut`; their uses get the ops before it."""
    old = function.body.block
    block = Block(arg_types=[argument.type for argument in old.args])
    mapper: dict[SSAValue, SSAValue] = dict(zip(old.args, block.args, strict=True))
    for own, new in mapper.items():
        new.name_hint = own.name_hint
    kept = [n for n in range(len(sequence.ops)) if n not in cut]
    used = {value for number in kept for value in sequence.operands(number)}
    for op in old.ops:
        number = sequence.number.get(op)
        if number is None:
            if op.results[0] not in used:
                continue
        elif number in cut:
            continue
        else:
            for value in sequence.operands(number):
                place = sequence.place(value)
                if place is not None and place in cut:
                    assert isinstance(value, OpResult)
                    same_ = sequence.ops[place - len(cut)].results[value.index]
                    mapper[value] = mapper[same_]
        block.add_op(op.clone(mapper))
    new = function.clone_without_regions()
    new.detach_region(0)
    new.add_region(Region(block))
    return new


def dispatched(ops: Iterable[Operation]) -> dict[str, int]:
    """Returns the number of the first dispatch of each executable, by name."""
    first: dict[str, int] = {}
    dispatches = [op for op in ops if isinstance(op, DispatchOp)]
    for number, op in enumerate(dispatches):
        first.setdefault(op.entry_point.root_reference.data, number)
    return first


def renumber(module: ModuleOp, before: dict[str, int], after: dict[str, int]) -> None:
    """Renames executables as in the whole program, by the number of their first dispatch."""
    names = {name: name.rpartition("_") for name in before}
    if any(parts[2] != str(before[name]) for name, parts in names.items()):
        return
    new = {name: f"{parts[0]}_{after[name]}" for name, parts in names.items()}
    for op in module.walk():
        if isinstance(op, DispatchOp):
            own = new[op.entry_point.root_reference.data]
            op.entry_point = SymbolRefAttr(own, [own])
        elif isinstance(op, ExecutableOp):
            own = StringAttr(new[op.sym_name.data])
            op.sym_name = own
            for inner in op.walk():
                if isinstance(inner, func.FuncOp):
                    inner.sym_name = own


def source_bytes(blob: Blob) -> int:
    """Returns the bytes of the source weights of a blob, which have no padding."""
    return blob.size if blob.recipe is None else sum(map(source_bytes, blob.recipe.sources))


def add_work(function: func.FuncOp, sequence: Sequence, run: Run, shortened: Shortened) -> None:
    """Adds the work of the omitted layers to that of the function."""
    known = function.attributes.get("work")
    if not isinstance(known, DictionaryAttr):
        return
    tops = {o.sym_name.data: o for o in shortened.module.ops if isinstance(o, ExecutableOp)}
    used = set(weights_in(sequence, layer(run, 0)))
    own = [blob for blob in used if shortened.weights.layers_of(blob)]
    more = {"flops": 0, "bytes": sum(map(source_bytes, own))}
    for number in layer(run, 0):
        op = sequence.ops[number]
        if isinstance(op, DispatchOp):
            work = tops[op.entry_point.root_reference.data].attributes.get("work")
            flops = work.data.get("flops") if isinstance(work, DictionaryAttr) else None
            more["flops"] += flops.value.data if isinstance(flops, IntegerAttr) else 0
    function.attributes["work"] = DictionaryAttr(
        {
            name: IntegerAttr(value.value.data + shortened.left_out * more[name], i64)
            for name, value in known.data.items()
            if isinstance(value, IntegerAttr)
        }
    )
