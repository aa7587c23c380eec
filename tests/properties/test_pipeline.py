"""Random programs: the source, the module after every phase, and the C agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from irees.testing.oracles import pipeline_agrees, report
from irees.testing.profiles import load
from irees.testing.strategies import modules

FACTOR = load()
# What random programs do not draw yet, because the compiler is known to be wrong there.
LEFT_OUT = {"gather", "sort"}


def names() -> tuple[str, ...]:
    from irees.testing.builders import BUILDERS

    return tuple(n for n in BUILDERS if n not in LEFT_OUT)


def check(programs, **options):
    found = pipeline_agrees(programs, **options)
    assert not found, report(programs, found)


@settings(max_examples=80 * FACTOR)
@given(modules(min_size=1, max_size=1, ops=names()))
def test_every_phase_keeps_the_meaning(programs):
    check(programs, compiled=False)


@settings(max_examples=8 * FACTOR)
@given(modules(min_size=1, max_size=6, ops=names()))
def test_compiled_programs_do_what_the_source_says(programs):
    check(programs)


@pytest.mark.parametrize("fp", ["strict"])
@settings(max_examples=4 * FACTOR)
@given(programs=modules(min_size=1, max_size=6, ops=names()))
def test_strict_programs_are_exact(fp, programs):
    check(programs, fp=fp)
