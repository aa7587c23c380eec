"""Random programs: the source, the module after every phase, and the C agree."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from irees.testing.faults import fail_rewrite
from irees.testing.oracles import pipeline_agrees, report
from irees.testing.profiles import load
from irees.testing.strategies import modules

FACTOR = load()
AT_ONCE = (1, 6) if FACTOR == 1 else (17, 17)
"""Programs that are compiled together: many cost little more than one. A night has 20,400."""
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
# What random programs do not draw yet, because the compiler is known to be wrong there.
LEFT_OUT: set[str] = set()


def names() -> tuple[str, ...]:
    from irees.testing.builders import BUILDERS

    return tuple(n for n in BUILDERS if n not in LEFT_OUT)


def check(programs, **options):
    found = pipeline_agrees(programs, **options)
    if found:
        alone = [(p, f) for p in programs if (f := pipeline_agrees([p], **options))]
        program, found = alone[0] if alone else (None, found)
        raise AssertionError(report([program] if program else programs, found))


@settings(max_examples=80 * FACTOR)
@given(modules(min_size=1, max_size=1, ops=names()))
def test_every_phase_keeps_the_meaning(programs):
    check(programs, compiled=False)


# Shrinking would compile for minutes: `check` says which program it is.
@settings(max_examples=8 * FACTOR, phases=NO_SHRINKING)
@given(modules(*AT_ONCE, ops=names()))
def test_compiled_programs_do_what_the_source_says(programs):
    check(programs, phases=False)


@pytest.mark.parametrize("fp", ["strict"])
@settings(max_examples=4 * FACTOR, phases=NO_SHRINKING)
@given(programs=modules(*AT_ONCE, ops=names()))
def test_strict_programs_are_exact(fp, programs):
    check(programs, phases=False, fp=fp)


@settings(max_examples=30 * FACTOR)
@given(programs=modules(min_size=1, max_size=1, ops=names()), limit=st.integers(0, 40))
def test_any_number_of_rewrites_keeps_the_meaning(programs, limit):
    check(programs, compiled=False, rewrite_limit=limit)


@pytest.mark.passes_fail
@settings(max_examples=30 * FACTOR)
@given(programs=modules(min_size=1, max_size=1, ops=names()), number=st.integers(1, 40))
def test_any_rewrite_may_fail(programs, number):
    with fail_rewrite(number):
        check(programs, compiled=False)


@settings(max_examples=4 * FACTOR, phases=NO_SHRINKING)
@given(programs=modules(*AT_ONCE, ops=names()), limit=st.integers(0, 200))
def test_compiled_programs_are_right_at_any_limit(programs, limit):
    check(programs, phases=False, rewrite_limit=limit)
