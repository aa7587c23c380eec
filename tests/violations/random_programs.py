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
OPS: tuple[Callable[[Maker], None], ...] = (
    Maker.cast, Maker.expand, Maker.collapse, Maker.concat, Maker.slice, Maker.insert, Maker.pad,
    Maker.generic, Maker.generic, Maker.generic, Maker.named, Maker.named, Maker.transpose,
    Maker.elementwise, Maker.ext,
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
