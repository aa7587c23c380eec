"""
The kernels of programs, for each target, are those that are stored.

A change of a text on purpose stores new digests by `python -m tests.golden --write` and says in its
commit why. Modules of PyTorch are compared by `python -m tests.golden` alone.
"""

from __future__ import annotations

import pytest

from tests.golden.__main__ import code, digest, stored
from tests.golden.programs import TARGETS, programs

PROGRAMS = {p.name: p for p in programs() if p.text is not None}
SMALL = [name for name in sorted(PROGRAMS) if len(PROGRAMS[name].text or "") < 1 << 20]
DIGESTS = stored()


@pytest.mark.parametrize("name", SMALL[::2])
def test_texts_are_those_that_are_stored(name):
    """Every other program, of which CI takes a sample."""
    found = {target: digest(PROGRAMS[name], target) for target in TARGETS}
    assert found == DIGESTS[name], f"see python -m tests.golden --diff main --only {name}"


def test_every_program_is_stored():
    assert sorted(set(PROGRAMS) - set(DIGESTS)) == []


def test_comments_do_not_count():
    assert code('a = "/* x */"; /* y\n z */ // w\n\nb;') == 'a = "/* x */";\nb;'
    assert code("int a;") != code("int b;")
