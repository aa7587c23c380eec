"""Index expressions advance as their steps say, for every number of a range."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from irees.analysis.affine_steps import even_tile, step_of

LOOPS = 2
DIMS = [AffineExpr.dimension(d) for d in range(LOOPS)]
NUMBERS = st.integers(1, 12)


def extend(inner: st.SearchStrategy[AffineExpr]) -> st.SearchStrategy[AffineExpr]:
    """Sums, and products and quotients with numbers."""
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, st.integers(-4, 4)).map(lambda p: p[0] * p[1]),
        st.tuples(inner, NUMBERS).map(lambda p: p[0] // p[1]),
        st.tuples(inner, NUMBERS).map(lambda p: p[0] % p[1]),
    )


EXPRESSIONS = st.recursive(
    st.sampled_from(DIMS) | st.integers(-5, 5).map(AffineExpr.constant), extend, max_leaves=5
)


@settings(max_examples=400)
@given(EXPRESSIONS, st.integers(0, LOOPS - 1), st.integers(0, 40), st.integers(0, 40))
def test_an_expression_advances_evenly(expr, loop, at, other):
    step = step_of(expr, loop)
    assert step is not None
    place = [other] * LOOPS
    place[loop] = at
    further = list(place)
    further[loop] += step.every
    assert expr.eval(further, []) - expr.eval(place, []) == step.by


def test_tiles_are_whole_blocks():
    i = DIMS[0]
    assert even_tile(50, [(i // 32, 0), (i % 32, 0)]) == 64
    assert even_tile(50, [(i // 4 % 8, 0), (i, 0)]) == 64
    assert even_tile(50, [(i * 3 + DIMS[1] // 7, 0)]) == 50
    assert even_tile(50, [(i * DIMS[1], 0)]) is None
