import marimo

app = marimo.App(width="medium", app_title="Write a pass for irees")


@app.cell
def _():
    from dataclasses import dataclass

    import marimo as mo
    from xdsl.context import Context
    from xdsl.dialects import arith
    from xdsl.dialects.builtin import FloatAttr, ModuleOp
    from xdsl.passes import ModulePass
    from xdsl.pattern_rewriter import (
        PatternRewriter,
        PatternRewriteWalker,
        RewritePattern,
        op_type_rewrite_pattern,
    )

    import irees

    return (
        Context,
        FloatAttr,
        ModuleOp,
        ModulePass,
        PatternRewriteWalker,
        PatternRewriter,
        RewritePattern,
        arith,
        dataclass,
        irees,
        mo,
        op_type_rewrite_pattern,
    )


@app.cell
def _(mo):
    mo.md(
        """
        # Write a pass

        The pass replaces a product with 2 by a sum. It is an ordinary pass of xDSL: a pattern,
        whose docstring is its equation, and a class that applies it. Then we run it alone, inside
        the pipeline, and against random programs.
        """
    )


@app.cell
def _(
    FloatAttr,
    PatternRewriter,
    RewritePattern,
    arith,
    op_type_rewrite_pattern,
):
    class DoubleByAdding(RewritePattern):
        """mulf(x, 2)  =>  addf(x, x)"""

        @op_type_rewrite_pattern
        def match_and_rewrite(self, op: arith.MulfOp, rewriter: PatternRewriter) -> None:
            constant = op.rhs.owner
            if not isinstance(constant, arith.ConstantOp):
                return
            if not isinstance(constant.value, FloatAttr) or constant.value.value.data != 2.0:
                return
            rewriter.replace(op, arith.AddfOp(op.lhs, op.lhs))

    return (DoubleByAdding,)


@app.cell
def _(
    Context,
    DoubleByAdding,
    ModuleOp,
    ModulePass,
    PatternRewriteWalker,
    dataclass,
):
    @dataclass(frozen=True)
    class DoubleByAddingPass(ModulePass):
        """Replaces products with 2 by sums."""

        name = "acme-double-by-adding"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            PatternRewriteWalker(DoubleByAdding()).rewrite_module(op)

    return (DoubleByAddingPass,)


@app.cell
def _(mo):
    text = mo.ui.code_editor(
        """func.func @main(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %two = arith.constant 2.0 : f32
  %r = linalg.map ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) (%v: f32, %w: f32) {
    %p = arith.mulf %v, %two : f32
    linalg.yield %p : f32
  }
  return %r : tensor<?xf32>
}""",
        language="cpp",
        label="A program",
    )
    text
    return (text,)


@app.cell
def _(DoubleByAddingPass, irees, mo, text):
    from irees.dialects import get_context

    before = irees.import_mlir(text.value)
    after = before.clone()
    DoubleByAddingPass().apply(get_context(), after)
    mo.vstack(
        [
            mo.vstack([mo.md(title), mo.ui.code_editor(str(m), language="cpp", disabled=True)])
            for title, m in (("### Before", before), ("### After", after))
        ]
    )
    return after, before


@app.cell
def _(after, before, mo):
    import numpy as np

    from irees.interpreters import Interpreter

    # NaN, infinities and denormals: the interpreter must give the same bits.
    x = np.array([0, -0.0, 1.5, 1e38, np.inf, -np.inf, np.nan, 1e-45], np.float32)
    results = [Interpreter(m).call("main", x, np.zeros(8, np.float32))[0] for m in (before, after)]
    np.testing.assert_array_equal(*results)
    mo.md("The interpreter gives the same results for both, special numbers included.")
    return np, x


@app.cell
def _(DoubleByAddingPass, irees, mo, np, text, x):
    program = irees.compile(text.value, passes={"after:global-opt": DoubleByAddingPass()})
    np.testing.assert_array_equal(program(x, np.zeros(8, np.float32)), x + x)
    mo.vstack([mo.md("## In the pipeline, behind `global-opt`"), program])
    return


@app.cell
def _(DoubleByAddingPass, mo):
    from irees.testing.campaigns import fuzz

    # Fails if a program changes its meaning, or if the pass never changes one.
    found = fuzz(DoubleByAddingPass(), ops=["arith.mulf"], seconds=5)
    mo.vstack([mo.md("## Against random programs"), mo.plain_text(str(found))])
    return


if __name__ == "__main__":
    app.run()
