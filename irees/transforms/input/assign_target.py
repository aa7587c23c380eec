"""
Gives a module the target that passes read machine facts from.

    builtin.module { ... }
  =>
    builtin.module attributes {irees.target = #irees.target<{arch = "sm_80", ...}>} { ... }

The pipeline assigns the target of its options. This pass does it for single passes:

    xdsl-opt -p 'irees-assign-target{target="cpu:x86-64-v3" facts="threads=8"},...'

`facts` overrides facts by their names in `irees.Target`, separated by spaces; those of a GPU begin
with `gpu.`, and words of a list are separated by commas. IREE: `iree-hal-assign-target-devices`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.dialects.irees_target import DEFAULT, DEFAULT_GPU, assign_target
from irees.errors import ArgumentError
from irees.target import GpuFacts, Target


def overridden(target: Target, facts: str) -> Target:
    """Returns a target with some facts replaced. Raises ArgumentError for one that it lacks."""
    own: dict[str, object] = {}
    of_gpu: dict[str, object] = {}
    gpu = target.gpu or DEFAULT_GPU
    for part in facts.split():
        name, _, text = part.partition("=")
        leaf = name.removeprefix("gpu.")
        into, base = (own, target) if leaf == name else (of_gpu, gpu)
        into[leaf] = _parsed(base, leaf, text)
    if of_gpu:
        own["gpu"] = replace(gpu, **of_gpu)
    return replace(target, **own)


def _parsed(base: Target | GpuFacts, name: str, text: str) -> object:
    known = [each.name for each in fields(base)]
    if name not in known:
        raise ArgumentError(f"a target has no fact {name!r}", hint=f"use one of {', '.join(known)}")
    old = getattr(base, name)
    if isinstance(old, tuple):
        return tuple(text.split(",")) if text else ()
    if isinstance(old, bool):
        return text == "true"
    try:
        return int(text) if isinstance(old, int) else text
    except ValueError as error:
        raise ArgumentError(f"fact {name!r} is {text!r}, but must be a number") from error


@dataclass(frozen=True)
class AssignTargetPass(ModulePass):
    """Gives a module the target that passes read machine facts from."""

    name = "irees-assign-target"

    target: str = ""
    facts: str = ""
    fp: str = "default"
    allow_tf32: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = Target.parse(self.target) if self.target else DEFAULT
        target = overridden(target, self.facts)
        assign_target(op, target, strict=self.fp == "strict", tf32=self.allow_tf32)
