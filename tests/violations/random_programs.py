"""Random programs over tensors of static and dynamic dims, for `fuzz.py`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.violations.programs import COMPARE, Program, tensor_type

Shape = tuple[int, ...]
DIMS = (-1, -1, -1, 1, 2, 3, 4)
"""What a dim of a random type is; -1 is dynamic."""


class Maker:
    """Writes a function op by op; each takes tensors of the pool and adds its result."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.lines: list[str] = []
        self.arguments: list[Shape | str] = []
        self.pool: list[tuple[str, Shape]] = []
        self.count = 0

    # --- names and types --------------------------------------------------------------------

    def fresh(self) -> str:
        """A new name."""
        self.count += 1
        return f"%v{self.count}"

    def shape(self, rank: int) -> Shape:
        """A random type's shape."""
        return tuple(int(self.rng.choice(DIMS)) for _ in range(rank))

    def argument(self, kind: Shape | str) -> str:
        """A new argument."""
        self.arguments.append(kind)
        return f"%x{len(self.arguments) - 1}"

    def tensor(self, rank: int) -> tuple[str, Shape]:
        """A tensor of a rank: one that there is, or an argument."""
        found = [v for v in self.pool if len(v[1]) == rank]
        if found and self.rng.random() < 0.7:
            return found[int(self.rng.integers(len(found)))]
        shape = self.shape(rank)
        self.pool.append((self.argument(shape), shape))
        return self.pool[-1]

    def index(self) -> str:
        """An index operand: an argument, or a dim of a tensor."""
        if not self.pool or self.rng.random() < 0.5:
            return self.argument("index")
        name, shape = self.pool[int(self.rng.integers(len(self.pool)))]
        if not shape:
            return self.argument("index")
        at, result = self.fresh(), self.fresh()
        self.lines.append(f"{at} = arith.constant {int(self.rng.integers(len(shape)))} : index")
        self.lines.append(f"{result} = tensor.dim {name}, {at} : {tensor_type(shape)}")
        return result

    def result(self, text: str, shape: Shape) -> None:
        """Adds an op of one result to the function."""
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        self.pool.append((name, shape))

    def like(self, shape: Shape) -> Shape:
        """A shape that is compatible: some static dims become dynamic, or the other way round."""
        return tuple(
            n if self.rng.random() < 0.6 else -1 if n >= 0 else int(self.rng.choice(DIMS))
            for n in shape
        )

    def filled(self, shape: Shape) -> str:
        """An init of zeros whose dynamic sizes are index operands."""
        sizes = ", ".join(self.index() for n in shape if n < 0)
        kind, zero, empty, name = tensor_type(shape), self.fresh(), self.fresh(), self.fresh()
        self.lines.append(f"{zero} = arith.constant 0.0 : f32")
        self.lines.append(f"{empty} = tensor.empty({sizes}) : {kind}")
        self.lines.append(
            f"{name} = linalg.fill ins({zero} : f32) outs({empty} : {kind}) -> {kind}"
        )
        self.pool.append((name, shape))
        return name

    def init(self, shape: Shape) -> tuple[str, Shape]:
        """What an op writes to."""
        if self.rng.random() < 0.5:
            return self.filled(shape), shape
        name = self.argument(shape)
        self.pool.append((name, shape))
        return name, shape

    # --- ops ----------------------------------------------------------------------------------

    def cast(self) -> None:
        """tensor.cast"""
        name, shape = self.tensor(int(self.rng.integers(1, 4)))
        new = self.like(shape)
        if all(a == b or -1 in (a, b) for a, b in zip(shape, new, strict=True)):
            self.result(f"tensor.cast {name} : {tensor_type(shape)} to {tensor_type(new)}", new)

    def expand(self) -> None:
        """tensor.expand_shape of the first dim in two"""
        name, shape = self.tensor(int(self.rng.integers(1, 3)))
        new = (*self.shape(2), *shape[1:])
        if shape[0] >= 0:
            new = (-1, *new[1:]) if self.rng.random() < 0.5 else (1, *shape)
        sizes = [self.index() if n < 0 else str(n) for n in new[:2]] + [str(n) for n in new[2:]]
        if any(n < 0 for n in new[2:]):
            return
        groups = "[0, 1]" + "".join(f", [{i}]" for i in range(2, len(new)))
        known = new[0] * new[1] if min(new[:2]) >= 0 else -1
        if known != shape[0]:
            return
        kinds = f"{tensor_type(shape)} into {tensor_type(new)}"
        text = f"tensor.expand_shape {name} [{groups}] output_shape [{', '.join(sizes)}] : {kinds}"
        self.result(text, new)

    def collapse(self) -> None:
        """tensor.collapse_shape of the first two dims"""
        name, shape = self.tensor(int(self.rng.integers(2, 4)))
        first = shape[0] * shape[1] if min(shape[:2]) >= 0 else -1
        new = (first, *shape[2:])
        groups = "[0, 1]" + "".join(f", [{i}]" for i in range(2, len(shape)))
        kinds = f"{tensor_type(shape)} into {tensor_type(new)}"
        self.result(f"tensor.collapse_shape {name} [{groups}] : {kinds}", new)

    def concat(self) -> None:
        """tensor.concat"""
        rank = int(self.rng.integers(1, 4))
        operands = [self.tensor(rank) for _ in range(int(self.rng.integers(1, 4)))]
        along = int(self.rng.integers(rank))
        new: list[int] = []
        for axis in range(rank):
            known = {s[axis] for _, s in operands if s[axis] >= 0}
            if axis == along:
                whole = [s[axis] for _, s in operands]
                new.append(sum(whole) if min(whole) >= 0 else -1)
            elif len(known) > 1:
                return
            else:
                new.append(known.pop() if known and self.rng.random() < 0.5 else -1)
        if new[along] < 0 and self.rng.random() < 0.3:
            new[along] = int(self.rng.integers(1, 9))
        names, kinds = (", ".join(x) for x in ([n for n, _ in operands],
                                               [tensor_type(s) for _, s in operands]))  # fmt: skip
        shape = tuple(new)
        self.result(
            f"tensor.concat dim({along}) {names} : ({kinds}) -> {tensor_type(shape)}", shape
        )

    def slice(self) -> None:
        """tensor.extract_slice"""
        name, shape = self.tensor(int(self.rng.integers(1, 3)))
        new = self.shape(len(shape))
        offsets, strides = ([self._number() for _ in shape] for _ in range(2))
        sizes = [self.index() if n < 0 else str(n) for n in new]
        lists = " ".join(f"[{', '.join(x)}]" for x in (offsets, sizes, strides))
        kinds = f"{tensor_type(shape)} to {tensor_type(new)}"
        self.result(f"tensor.extract_slice {name}{lists} : {kinds}", new)

    def insert(self) -> None:
        """tensor.insert_slice"""
        rank = int(self.rng.integers(1, 3))
        (part, small), (whole, shape) = self.tensor(rank), self.tensor(rank)
        offsets, strides = ([self._number() for _ in shape] for _ in range(2))
        sizes = [self.index() if n < 0 else str(n) for n in small]
        lists = " ".join(f"[{', '.join(x)}]" for x in (offsets, sizes, strides))
        kinds = f"{tensor_type(small)} into {tensor_type(shape)}"
        self.result(f"tensor.insert_slice {part} into {whole}{lists} : {kinds}", shape)

    def _number(self) -> str:
        return self.index() if self.rng.random() < 0.5 else str(int(self.rng.choice((0, 1, 1, 2))))

    def pad(self) -> None:
        """tensor.pad"""
        name, shape = self.tensor(int(self.rng.integers(1, 3)))
        low, high = ([self._number() for _ in shape] for _ in range(2))
        zero, new = self.fresh(), tuple(-1 for _ in shape)
        if self.rng.random() < 0.3:
            new = self.like(new)
        for axis, n in enumerate(shape):
            widths = low[axis], high[axis]
            if n >= 0 and all(w.isdigit() for w in widths):
                new = (*new[:axis], n + sum(map(int, widths)), *new[axis + 1 :])
        self.lines.append(f"{zero} = arith.constant 7.0 : f32")
        indices = ", ".join(f"%i{self.count}_{axis}: index" for axis in range(len(shape)))
        body = f"{{\n  ^bb0({indices}):\n    tensor.yield {zero} : f32\n  }}"
        lists = f"low[{', '.join(low)}] high[{', '.join(high)}]"
        kinds = f"{tensor_type(shape)} to {tensor_type(new)}"
        self.result(f"tensor.pad {name} {lists} {body} : {kinds}", new)

    def generic(self) -> None:
        """linalg.generic with random maps"""
        loops = int(self.rng.integers(1, 4))
        kinds = ["parallel" if self.rng.random() < 0.7 else "reduction" for _ in range(loops)]
        operands = [self.tensor(int(self.rng.integers(0, 3))) for _ in range(2)]
        out, shape = self.init(self.shape(int(self.rng.integers(0, 3))))
        operands.append((out, shape))
        used: set[int] = set()
        maps = [self._map(loops, len(s), used) for _, s in operands]
        if used != set(range(loops)):
            return
        args = ", ".join(f"%{c}{self.count}: f32" for c in "abc")
        a, b, c = (f"%{x}{self.count}" for x in "abc")
        reads = self.rng.random() < 0.5
        body = f"%s{self.count} = arith.addf {a}, {b} : f32\n    "
        body += f"%t{self.count} = arith.addf %s{self.count}, {c if reads else a} : f32\n    "
        iterators = ", ".join(f'"{k}"' for k in kinds)
        affine = ", ".join(f"affine_map<{m}>" for m in maps)
        types = [tensor_type(s) for _, s in operands]
        names = [n for n, _ in operands]
        text = f"linalg.generic {{indexing_maps = [{affine}], iterator_types = [{iterators}]}} "
        text += (
            f"ins({', '.join(names[:2])} : {', '.join(types[:2])}) outs({out} : {types[2]}) {{\n"
        )
        text += f"  ^bb0({args}):\n    {body}linalg.yield %t{self.count} : f32\n  }} -> {types[2]}"
        self.result(text, shape)

    def _map(self, loops: int, rank: int, used: set[int]) -> str:
        exprs: list[str] = []
        for _ in range(rank):
            loop = int(self.rng.integers(loops))
            if self.rng.random() < 0.7:
                used.add(loop)
                exprs.append(f"d{loop}")
            else:
                exprs.append(self._expr(loops, 2))
        return f"({', '.join(f'd{i}' for i in range(loops))}) -> ({', '.join(exprs)})"

    def _expr(self, loops: int, depth: int) -> str:
        kind = int(self.rng.integers(7 if depth else 2))
        inner = f"d{int(self.rng.integers(loops))}"
        number = int(self.rng.integers(-3, 5))
        if kind == 0:
            return str(abs(number)) if self.rng.random() < 0.9 else str(1 << 40)
        if kind == 1:
            return inner
        a = self._expr(loops, depth - 1)
        if kind == 2:
            return f"({a}) + {number}" if self.rng.random() < 0.5 else f"({a}) + {inner}"
        if kind == 3:
            return f"({a}) * {number}"
        by = abs(number) + 1
        return f"({a}) {('mod', 'floordiv', 'ceildiv')[kind - 4]} {by}"

    def named(self) -> None:
        """A named op of linalg"""
        name, ranks = NAMED[int(self.rng.integers(len(NAMED)))]
        operands = [self.tensor(rank) for rank in ranks[:-1]]
        out, shape = self.init(self.shape(ranks[-1]))
        names = ", ".join(n for n, _ in operands)
        kinds = ", ".join(tensor_type(s) for _, s in operands)
        kind = tensor_type(shape)
        self.result(f"{name} ins({names} : {kinds}) outs({out} : {kind}) -> {kind}", shape)

    def transpose(self) -> None:
        """linalg.transpose, linalg.broadcast and linalg.reduce"""
        name, shape = self.tensor(2)
        kind = tensor_type(shape)
        which = int(self.rng.integers(3))
        out, new = self.init(self.shape((2, 3, 1)[which]))
        outs = f"outs({out} : {tensor_type(new)})"
        if which == 0:
            text = f"linalg.transpose ins({name} : {kind}) {outs} permutation = [1, 0]"
        elif which == 1:
            text = f"linalg.broadcast ins({name} : {kind}) {outs} dimensions = [1]"
        else:
            text = f"linalg.reduce {{ arith.addf }} ins({name} : {kind}) {outs} dimensions = [1]"
        self.result(text, new)

    def elementwise(self) -> None:
        """arith on tensors of one type"""
        rank = int(self.rng.integers(1, 3))
        a, shape = self.tensor(rank)
        same = [n for n, s in self.pool if s == shape]
        b = same[int(self.rng.integers(len(same)))]
        op = ("arith.addf", "arith.subf", "arith.maximumf")[int(self.rng.integers(3))]
        self.result(f"{op} {a}, {b} : {tensor_type(shape)}", shape)

    def ext(self) -> None:
        """Ops of iree_linalg_ext"""
        which = int(self.rng.integers(4))
        a, shape = self.tensor(2)
        kind, body = tensor_type(shape), COMPARE.replace("%more", f"%m{self.count}")
        body = body.replace("%a", f"%a{self.count}").replace("%b", f"%b{self.count}")
        dim = int(self.rng.integers(2))
        if which == 0:
            text = f"iree_linalg_ext.sort dimension({dim}) outs({a} : {kind}) {body} -> {kind}"
            self.result(text, shape)
            return
        if which == 1:
            new = tuple(
                int(self.rng.integers(1, 4)) if i == dim else n for i, n in enumerate(shape)
            )
            if shape[dim] >= 0 and new[dim] > shape[dim]:
                return
            out, to = self.filled(new), tensor_type(new)
            text = f"iree_linalg_ext.topk_v2 dimension({dim}) is_sorted ins({a} : {kind}) "
            self.result(text + f"outs({out} : {to}) {body} -> {to}", new)
            return
        rest = shape[1 - dim : 2 - dim]
        out, new = self.init(self.like(shape))
        acc, carried = self.init(self.like(rest))
        if any(x != y and -1 not in (x, y) for x, y in zip((*new, *carried), (*shape, *rest))):
            return
        name, kinds = self.fresh(), f"{tensor_type(new)}, {tensor_type(carried)}"
        inclusive = "true" if which == 2 else "false"
        text = f"{name}:2 = iree_linalg_ext.scan dimension({dim}) inclusive({inclusive}) "
        text += f"ins({a} : {kind}) outs({out}, {acc} : {kinds}) {{\n"
        text += f"  ^bb0(%p{self.count}: f32, %q{self.count}: f32):\n"
        text += f"    %s{self.count} = arith.addf %p{self.count}, %q{self.count} : f32\n"
        text += f"    iree_linalg_ext.yield %s{self.count} : f32\n  }} -> {kinds}"
        self.lines.append(text)
        self.pool += [(f"{name}#0", new), (f"{name}#1", carried)]

    # --- sizes that are computed, indices that are data ---------------------------------------

    def computed(self) -> str:
        """An index that is computed of two others."""
        a, b, result = self.index(), self.index(), self.fresh()
        op = INDEX_OPS[int(self.rng.integers(len(INDEX_OPS)))]
        self.lines.append(f"{result} = arith.{op} {a}, {b} : index")
        return result

    def computed_slice(self) -> None:
        """A slice whose offset and size are computed"""
        name, shape = self.tensor(1)
        offset, size = self.computed(), self.computed()
        kinds = f"{tensor_type(shape)} to tensor<?xf32>"
        self.result(f"tensor.extract_slice {name}[{offset}] [{size}] [1] : {kinds}", (-1,))

    def computed_fill(self) -> None:
        """A fill whose size is computed, and what reads it beside another tensor"""
        size, zero, empty = self.computed(), self.fresh(), self.fresh()
        self.lines.append(f"{zero} = arith.constant 2.0 : f32")
        self.lines.append(f"{empty} = tensor.empty({size}) : tensor<?xf32>")
        outs = f"outs({empty} : tensor<?xf32>)"
        self.result(f"linalg.fill ins({zero} : f32) {outs} -> tensor<?xf32>", (-1,))

    def numbers(self, rank: int) -> tuple[str, Shape]:
        """Elements of a tensor as i32."""
        name, shape = self.tensor(rank)
        result = self.fresh()
        kind, to = tensor_type(shape), tensor_type(shape, "i32")
        self.lines.append(f"{result} = arith.fptosi {name} : {kind} to {to}")
        return result, shape

    def gather(self) -> None:
        """iree_linalg_ext.gather of rows"""
        (source, shape), (at, places) = self.tensor(2), self.numbers(1)
        new = (places[0], shape[1])
        out = self.filled(new)
        ins = f"ins({source}, {at} : {tensor_type(shape)}, {tensor_type(places, 'i32')})"
        kind = tensor_type(new)
        text = f"iree_linalg_ext.gather dimension_map = [0] {ins} outs({out} : {kind}) -> {kind}"
        self.result(text, new)

    def scatter(self) -> None:
        """iree_linalg_ext.scatter of rows"""
        (update, shape), (at, places) = self.tensor(2), self.numbers(2)
        if places[1] not in (-1, 1):
            return
        if places[1] < 0:
            cast = self.fresh()
            kinds = f"{tensor_type(places, 'i32')} to {tensor_type((places[0], 1), 'i32')}"
            self.lines.append(f"{cast} = tensor.cast {at} : {kinds}")
            at, places = cast, (places[0], 1)
        if places[0] != shape[0] and -1 not in (places[0], shape[0]):
            return
        out, new = self.init((self.shape(1)[0], shape[1]))
        kind, number = tensor_type(new), self.count
        ins = f"ins({update}, {at} : {tensor_type(shape)}, {tensor_type(places, 'i32')})"
        text = "iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) "
        text += f"{ins} outs({out} : {kind}) {{\n  ^bb0(%l{number}: f32, %m{number}: f32):\n"
        text += f"    %n{number} = arith.addf %l{number}, %m{number} : f32\n"
        self.result(text + f"    iree_linalg_ext.yield %n{number} : f32\n  }} -> {kind}", new)

    def extract(self) -> None:
        """A generic that reads where its indices, or its elements, say"""
        (source, shape), (rows, kind) = self.tensor(1), self.numbers(1)
        out, new = self.init((kind[0],))
        number, ranked = self.count, tensor_type(new)
        place = f"%q{number} = arith.index_cast %p{number} : i32 to index"
        if self.rng.random() < 0.5:
            by = ("divui", "remui", "addi", "muli")[int(self.rng.integers(4))]
            place = (
                f"%i{number} = linalg.index 0 : index\n    %k{number} = arith.constant 2 : index"
            )
            place += f"\n    %q{number} = arith.{by} %i{number}, %k{number} : index"
        maps = "affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>"
        text = f'linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}} '
        text += f"ins({rows} : {tensor_type(kind, 'i32')}) outs({out} : {ranked}) {{\n"
        text += f"  ^bb0(%p{number}: i32, %o{number}: f32):\n    {place}\n"
        text += f"    %e{number} = tensor.extract {source}[%q{number}] : {tensor_type(shape)}\n"
        text += f"    %r{number} = arith.sitofp %p{number} : i32 to f32\n"
        text += f"    %s{number} = arith.addf %e{number}, %r{number} : f32\n"
        self.result(text + f"    linalg.yield %s{number} : f32\n  }} -> {ranked}", new)

    def window(self) -> None:
        """A convolution or pooling in two dims, with strides and dilations"""
        name, ranks = WINDOWS[int(self.rng.integers(len(WINDOWS)))]
        strides, dilations = ([int(n) for n in self.rng.integers(1, 4, 2)] for _ in range(2))
        operands = [self.tensor(rank) for rank in ranks[:-1]]
        out, shape = self.init(self.shape(ranks[-1]))
        names = ", ".join(n for n, _ in operands)
        kinds, kind = ", ".join(tensor_type(s) for _, s in operands), tensor_type(shape)
        settings = f"dilations = dense<{dilations}> : tensor<2xi64>, "
        settings += f"strides = dense<{strides}> : tensor<2xi64>"
        text = f"{name} {{{settings}}} ins({names} : {kinds}) outs({out} : {kind}) -> {kind}"
        self.result(text, shape)

    def reshape(self) -> None:
        """tensor.reshape to a shape that is computed"""
        name, shape = self.tensor(int(self.rng.integers(1, 3)))
        a, b, sizes = self.computed(), self.index(), self.fresh()
        self.lines.append(f"{sizes} = tensor.from_elements {a}, {b} : tensor<2xindex>")
        kinds = f"({tensor_type(shape)}, tensor<2xindex>) -> tensor<?x?xf32>"
        self.result(f"tensor.reshape {name}({sizes}) : {kinds}", (-1, -1))

    def softmax(self) -> None:
        """linalg.softmax"""
        name, shape = self.tensor(2)
        out, new = self.init(self.like(shape))
        kinds = f"ins({name} : {tensor_type(shape)}) outs({out} : {tensor_type(new)})"
        self.result(f"linalg.softmax dimension(1) {kinds} -> {tensor_type(new)}", new)

    def pack(self) -> None:
        """linalg.pack and linalg.unpack"""
        name, shape = self.tensor(2)
        out, new = self.init((*self.shape(2), 2, 4))
        into = f"inner_dims_pos = [0, 1] inner_tiles = [2, 4] into {out}"
        zero, kinds = self.fresh(), f"{tensor_type(shape)} -> {tensor_type(new)}"
        self.lines.append(f"{zero} = arith.constant 0.0 : f32")
        self.result(f"linalg.pack {name} padding_value({zero} : f32) {into} : {kinds}", new)
        if self.rng.random() < 0.5:
            packed, (to, last) = self.pool[-1][0], self.init(self.shape(2))
            into = f"inner_dims_pos = [0, 1] inner_tiles = [2, 4] into {to}"
            kinds = f"{tensor_type(new)} -> {tensor_type(last)}"
            self.result(f"linalg.unpack {packed} {into} : {kinds}", last)

    def branch(self) -> None:
        """scf.if with a slice on one side, and scf.for that passes a tensor on"""
        name, shape = self.tensor(1)
        a, b, flag, kind = self.index(), self.index(), self.fresh(), tensor_type(shape)
        number = self.count
        if self.rng.random() < 0.5:
            self.lines.append(f"{flag} = arith.cmpi slt, {a}, {b} : index")
            text = f"scf.if {flag} -> (tensor<?xf32>) {{\n"
            text += f"    %a{number} = tensor.extract_slice {name}[{a}] [{b}] [1] : "
            text += f"{kind} to tensor<?xf32>\n    scf.yield %a{number} : tensor<?xf32>\n"
            text += f"  }} else {{\n    %b{number} = tensor.cast {name} : {kind} to tensor<?xf32>\n"
            self.result(text + f"    scf.yield %b{number} : tensor<?xf32>\n  }}", (-1,))
            return
        self.lines.append(f"{flag} = arith.constant 5 : index")
        least, first = self.fresh(), self.fresh()
        self.lines.append(f"{least} = arith.constant -20 : index")
        self.lines.append(f"{first} = arith.maxsi {a}, {least} : index")
        text = (
            f"scf.for %i{number} = {first} to {flag} step {flag} iter_args(%t{number} = {name}) -> "
        )
        text += f"({kind}) {{\n    %u{number} = arith.addf %t{number}, {name} : {kind}\n"
        self.result(text + f"    scf.yield %u{number} : {kind}\n  }}", shape)


NAMED = [
    ("linalg.matmul", (2, 2, 2)),
    ("linalg.matvec", (2, 1, 1)),
    ("linalg.dot", (1, 1, 0)),
    ("linalg.batch_matmul", (3, 3, 3)),
    ("linalg.add", (2, 2, 2)),
    ("linalg.copy", (1, 1)),
    ("linalg.conv_1d", (1, 1, 1)),
    ("linalg.conv_2d", (2, 2, 2)),
    ("linalg.conv_1d_nwc_wcf", (3, 3, 3)),
    ("linalg.pooling_nwc_max", (3, 1, 3)),
    ("linalg.pooling_ncw_sum", (3, 1, 3)),
]
"""Named ops and the ranks of their operands."""
WINDOWS = [
    ("linalg.conv_2d_nchw_fchw", (4, 4, 4)),
    ("linalg.conv_2d_nhwc_hwcf", (4, 4, 4)),
    ("linalg.depthwise_conv_2d_nhwc_hwc", (4, 3, 4)),
    ("linalg.pooling_nchw_max", (4, 2, 4)),
    ("linalg.pooling_nhwc_sum", (4, 2, 4)),
]
"""Ops with windows of two dims, and the ranks of their operands."""
INDEX_OPS = """addi subi muli divsi divui remsi remui minsi maxsi ceildivsi floordivsi minui
shli""".split()
"""What sizes and offsets are computed with."""
OPS: tuple[Callable[[Maker], None], ...] = (
    Maker.cast, Maker.expand, Maker.collapse, Maker.concat, Maker.slice, Maker.insert, Maker.pad,
    Maker.generic, Maker.generic, Maker.generic, Maker.named, Maker.named, Maker.transpose,
    Maker.elementwise, Maker.ext, Maker.computed_slice, Maker.computed_fill, Maker.gather,
    Maker.scatter, Maker.extract, Maker.window, Maker.reshape, Maker.softmax, Maker.pack,
    Maker.branch,
)  # fmt: skip


def random_program(rng: np.random.Generator) -> Program:
    """A function of one to four ops, that returns all of their results."""
    maker = Maker(rng)
    wanted = int(rng.integers(1, 5))
    for _ in range(40):
        before = len(maker.lines)
        OPS[int(rng.integers(len(OPS)))](maker)
        wanted -= len(maker.lines) > before
        if wanted <= 0:
            break
    body = "\n  ".join(maker.lines)
    # All of them: what is not returned need not be computed, and may not trap then.
    left = [v for v in maker.pool if not v[0].startswith("%x")] or maker.pool[-1:]
    names = ", ".join(name for name, _ in left)
    kinds = ", ".join(tensor_type(shape) for _, shape in left)
    signature = ", ".join(
        f"%x{i}: {a if isinstance(a, str) else tensor_type(a)}"
        for i, a in enumerate(maker.arguments)
    )
    text = f"func.func @f({signature}) -> ({kinds}) {{\n  {body}\n  return {names} : {kinds}\n}}\n"
    return Program(text, maker.arguments)
