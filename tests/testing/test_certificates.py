"""Proofs of certificates are followed by arithmetic alone; what is changed does not follow."""

from __future__ import annotations

import copy
import json

import pytest

import irees
from irees.testing.certificates import check, read
from tests.transforms.codegen.common.test_verify_accesses import PROGRAMS, TARGETS


def certificates(name: str, target: str) -> list[list]:
    module = irees.compile(PROGRAMS[name], to="verification", target=target)
    kernels = [op for op in module.ops if op.name == "flow.executable"]
    return [json.loads(op.attributes["certificate"].data) for op in kernels]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_proofs_follow(name: str, target: str):
    for certificate in certificates(name, target):
        followed = check(certificate)
        assert followed.goals
        # Choices are of sorting networks, whose steps are powers of two.
        assert not followed.unfollowed or "cuda" in target


def test_a_changed_goal_does_not_follow():
    """One element less, and what was shown to the last element is not shown any more."""
    (certificate,) = certificates("matmul static", "cpu:x86-64-v3")
    changed, refused = copy.deepcopy(certificate), 0
    for dispatch in changed:
        for at, (goal, proof) in enumerate(dispatch["goals"]):
            if read(goal):
                dispatch["goals"][at] = [f"{goal}-1000000", proof]
                with pytest.raises(AssertionError):
                    check([{**dispatch, "goals": [dispatch["goals"][at]]}])
                refused += 1
    assert refused > 20


def test_polynomials_are_read():
    assert read("2*v1*v3-v2+7") == {("v1", "v3"): 2, ("v2",): -1, (): 7}
    assert read("-v2") == {("v2",): -1}
    assert read("0") == {}
