"""
Propagates a blocked channel layout through the graph: C x H x W becomes C/16 x H x W x 16.

In C x H x W, the channels of a pixel are far apart in memory. Vectors along W suffer from strides
and windows, or need a copy of the image. With blocks of as many channels as a vector has lanes,
every access is a whole vector at any stride. So the pass blocks the operands of convolutions and
of the ops between them: no tensor is packed or unpacked between two layers.

    %r = linalg.generic {maps = [(c, h, w, k, y, x) -> (k, h * 2 + y, w * 2 + x),
                                 (c, h, w, k, y, x) -> (c, k, y, x),
                                 (c, h, w, k, y, x) -> (c, h, w)]}
         ins(%image, %filter : tensor<32x9x9xf32>, tensor<64x32x3x3xf32>)
  =>
    %r = linalg.generic {maps = [(c, h, w, d, k, y, x, j) -> (k, h * 2 + y, w * 2 + x, j),
                                 (c, h, w, d, k, y, x, j) -> (c, k, y, x, j, d),
                                 (c, h, w, d, k, y, x, j) -> (c, h, w, d)]}
         ins(%image, %filter : tensor<2x9x9x16xf32>, tensor<4x2x3x3x16x16xf32>)

Loops are split like dims, so every map stays linear. Constant filters are packed at compile time.
An image whose channel count is not a multiple of a block, such as RGB, stays unblocked. Elementwise
ops, poolings, reductions over pixels, pads and other slices, reshapes of other dims, and casts
follow (`followers.py`); fills and constants are created in blocks. A remaining conversion is an
expand_shape and a transpose, so a vector of channels needs no copy; a remark gives the reason. A
minimum cut between the gain of convolutions and the cost of conversions selects the ops that run in
blocks (`plan.py`).

The pass skips matrix products, convolutions with channels innermost, grouped convolutions, output
channels that are dynamic or not a multiple of a block, and elements other than f32 and f64. The
order of sums in convolutions changes, so the pipeline omits the pass with `fp=strict`. MLIR:
`linalg-block-pack-matmul`, DataLayoutPropagation; ONNX Runtime:
NchwcTransformer; Liu et al., "Optimizing CNN Model Inference on CPUs" (2019).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.blocked_forms import Form, costs_nothing
from irees.dialects.irees_target import is_strict, target_of
from irees.dialects.storage import is_dim
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.global_opt.propagate_blocked_layouts.followers import Node
from irees.transforms.global_opt.propagate_blocked_layouts.packing import after, in_form, unpack
from irees.transforms.global_opt.propagate_blocked_layouts.plan import Plan, users
from irees.transforms.utils.shapes import constant_value, dims

NAME = "irees-propagate-blocked-layouts"


@dataclass
class Blocks:
    """Replaces ops by blocked ops; memoizes the values in each form."""

    plan: Plan
    made: dict[tuple[SSAValue, Form], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Form], SSAValue]
    )
    replaced: list[tuple[Node, Operation]] = field(default_factory=list[tuple[Node, Operation]])

    def get(self, value: SSAValue, form: Form, reader: Operation) -> SSAValue:
        """Returns a value in a form."""
        if (value, form) not in self.made:
            self.made[value, form] = in_form(value, form)
            if not costs_nothing(value, form):
                remark("missed", NAME, reader, f"packs {value.type} into blocks: {_why(value)}")
        return self.made[value, form]

    def replace(self, node: Node) -> None:
        """op(x)  =>  blocked op (blocked x); `finish` erases the old op"""
        operands = [
            v if f is None else self.get(v, f, node.op)
            for v, f in zip(node.op.operands, node.operands, strict=True)
        ]
        new = node.rebuild(operands)
        new.location = node.op.location
        Rewriter.insert_op(new, InsertPoint.before(node.op))
        for old, made, form in zip(node.op.results, new.results, node.results, strict=True):
            if form is not None:
                self.made[old, form] = made
        self.replaced.append((node, new))
        if node.flops:
            remark("passed", NAME, new, f"writes {new.results[0].type}, channels in blocks")

    def finish(self) -> None:
        """Unpacks replaced values for their remaining users; erases the old ops, last first."""
        for node, new in reversed(self.replaced):
            for old, made, form in zip(node.op.results, new.results, node.results, strict=True):
                if form is None:
                    old.replace_all_uses_with(made)
                    continue
                self._replace_dims(old, made, form)
                if old.uses:
                    self._unpack(old, made, form)
            Rewriter.erase_op(node.op)

    def _replace_dims(self, old: OpResult, made: SSAValue, form: Form) -> None:
        for use in list(old.uses):
            if not is_dim(use.operation):
                continue
            number = constant_value(use.operation.index)
            if number is None:
                continue
            b = after(made)
            sizes = dict(zip(form.order, dims(made, b), strict=True))
            sizes[form.channel, False] = old.type.get_shape()[form.channel]  # pyright: ignore
            Rewriter.replace_op(use.operation, [], [b.value(sizes[number, False])])

    def _unpack(self, old: OpResult, made: SSAValue, form: Form) -> None:
        if not costs_nothing(old, form):
            reader = users(old)[0] if users(old) else old.op
            why = self.plan.refused.get(reader, "this costs less than blocking it")
            text = f"unpacks {old.type} for {reader.name}: {why}"
            remark("missed", NAME, reader, text)
        old.replace_all_uses_with(unpack(form, made, old.type, after(made)))


def _why(value: SSAValue) -> str:
    owner = value.owner
    return f"{owner.name} is not blocked" if isinstance(owner, Operation) else "it is an argument"


@dataclass(frozen=True)
class PropagateBlockedLayoutsPass(ModulePass):
    """Runs convolutions and the ops between them on blocks of channels."""

    name = "irees-propagate-blocked-layouts"

    copy_flops: int = CPU.layout_copy

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Resources are printed by the builtin dialect, which text without a module does not load.
        ctx.get_optional_op(ModuleOp.name)
        target = target_of(op)
        if target.gpu is not None or is_strict(op):
            return
        plan = Plan.of(op, target.vector_bytes, self.copy_flops)
        chosen, blocks = plan.choose(), Blocks(plan)
        for convolution, why in plan.convolutions_left(chosen).items():
            remark("missed", NAME, convolution, f"a convolution is not blocked: {why}")
        for inner in list(op.walk()):
            if inner in chosen and may_rewrite(NAME, inner, f"blocks for {inner.name}"):
                blocks.replace(plan.nodes[inner])
        blocks.finish()
