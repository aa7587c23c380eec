"""Types that have no C form are refused."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import VectorType, f32

from irees.backends.common.types import c_type
from irees.errors import UnsupportedError


@pytest.mark.parametrize("shape", [[], [3], [0], [2, 4], [-1]])
def test_a_vector_that_is_no_power_of_two_is_refused(shape):
    with pytest.raises(UnsupportedError, match=r"has no type in C.*power of two"):
        c_type(VectorType(f32, shape))


def test_vectors_are_named_by_lanes_and_elements():
    assert c_type(VectorType(f32, [8])) == "v8f32"
