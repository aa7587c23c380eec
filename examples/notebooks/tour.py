import marimo

app = marimo.App(width="medium", app_title="A tour of irees")


@app.cell
def _():
    from pathlib import Path

    import marimo as mo
    import numpy as np

    import irees

    return Path, irees, mo, np


@app.cell
def _(mo):
    mo.md(
        """
        # A tour: one program through every phase

        A bias, a ReLU and the sum of each row, from linalg to C. Change the program, the target
        or the phase: the notebook compiles again.
        """
    )


@app.cell
def _(Path, mo):
    example = Path(__file__).parents[1] / "row_sums.mlir"
    source = mo.ui.code_editor(example.read_text(), language="cpp", label="The program")
    source
    return (source,)


@app.cell
def _(mo):
    from irees.pipeline import PHASES

    target = mo.ui.dropdown(
        ["cpu:x86-64-v3", "cpu:x86-64-v4", "cuda:sm_80", "cuda:sm_90"],
        "cpu:x86-64-v3",
        label="Target",
    )
    phase = mo.ui.dropdown([each.name for each in PHASES], "global-opt", label="Phase")
    mo.hstack([target, phase], justify="start")
    return PHASES, phase, target


@app.cell
def _(PHASES, irees, mo, phase, source, target):
    meaning = next(each.meaning for each in PHASES if each.name == phase.value)
    lowered = irees.compile(source.value, target=target.value, to=phase.value)
    mo.vstack(
        [
            mo.md(f"## The IR after {phase.value}\n\n{meaning}"),
            mo.ui.code_editor(str(lowered), language="cpp", disabled=True, max_height=420),
        ]
    )
    return (lowered,)


@app.cell
def _(lowered):
    # `irees.compile(to=...)` returns the module: its ops can be walked like any of xDSL's.
    ops = sorted({op.name for op in lowered.walk()})
    ops


@app.cell
def _(irees, mo, source):
    program = irees.compile(source.value)
    mo.vstack([mo.md("## The program for this machine"), program])
    return (program,)


@app.cell
def _(mo):
    rows = mo.ui.slider(0, 2000, value=300, label="Rows, known only when the program runs")
    rows
    return (rows,)


@app.cell
def _(mo, np, program, rows):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows.value, 64), np.float32)
    bias = rng.standard_normal(64, np.float32)
    sums = program(x, bias)
    expected = np.maximum(x + bias, 0).sum(1)
    np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-4)
    mo.md(f"{rows.value} sums are those of numpy.")


@app.cell
def _(mo, program):
    mo.vstack([mo.md("## Everything about it on one page"), program.report(measure=False)])
    return


if __name__ == "__main__":
    app.run()
