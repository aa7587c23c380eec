"""The ops of a contraction's nest mean what the loops do that they are lowered to."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context

import irees
from irees.frontends.mlir import import_mlir
from irees.transforms.codegen.cpu.lower_contractions import LowerContractionsPass
from irees.transforms.codegen.cpu.lower_micro_kernels import LowerMicroKernelsPass
from irees.transforms.codegen.cpu.pack_panels import PackPanelsPass
from irees.transforms.input.assign_target import AssignTargetPass

NARROW = "vector_bytes=32 vector_registers=16"
DOTS = "features=avx512_vnni,avx512_bf16"
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i32": np.int32}
PASSES = (LowerContractionsPass, PackPanelsPass, LowerMicroKernelsPass)
OPS = ("panel.pack", "panel.micro_kernel")


@dataclass(frozen=True)
class Case:
    """A contraction of two buffers: C[m, n] += A[m, k] * B[k, n], or a convolution of B."""

    facts: str
    types: tuple[str, str]
    casts: tuple[str, str] = ("", "")
    sizes: tuple[int, int, int] = (21, 45, 63)
    maps: str = "m, k; k, n; m, n"

    def text(self) -> str:
        narrow, wide = self.types
        kinds = [
            f"memref<{'x'.join(map(str, shape))}x{kind}>"
            for shape, kind in zip(self.shapes(), (narrow, narrow, wide), strict=True)
        ]
        maps = ", ".join(f"affine_map<(m, n, k) -> ({m})>" for m in self.maps.split(";"))
        family, zero = ("i", "0") if wide == "i32" else ("f", "0.0")
        widen = "\n".join(
            f"%{value}w = arith.{cast} %{value} : {narrow} to {wide}"
            for value, cast in zip("ab", self.casts, strict=True)
            if cast
        )
        a, b = (f"%{v}w" if cast else f"%{v}" for v, cast in zip("ab", self.casts, strict=True))
        return f"""
        func.func @main(%x: {kinds[0]}, %y: {kinds[1]}) -> {kinds[2]} {{
          %zero = arith.constant {zero} : {wide}
          %z = memref.alloc() : {kinds[2]}
          linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}} outs(%z : {kinds[2]}) {{
          ^bb0(%c: {wide}):
            linalg.yield %zero : {wide}
          }}
          linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"]}}
              ins(%x, %y : {kinds[0]}, {kinds[1]}) outs(%z : {kinds[2]}) {{
          ^bb0(%a: {narrow}, %b: {narrow}, %c: {wide}):
            {widen}
            %p = arith.mul{family} {a}, {b} : {wide}
            %s = arith.add{family} %c, %p : {wide}
            linalg.yield %s : {wide}
          }}
          return %z : {kinds[2]}
        }}
        """

    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of A, B and C."""
        sizes = dict(zip("mnk", self.sizes, strict=True))
        return [tuple(sizes[x.strip()] for x in each.split(",")) for each in self.maps.split(";")]

    def values(self) -> list[np.ndarray]:
        """A and B, small enough that their products are exact."""
        rng, dtype = np.random.default_rng(7), DTYPES[self.types[0]]
        least, most = (-128, 128) if self.types[0] == "i8" else (-8, 9)
        return [rng.integers(least, most, s).astype(dtype) for s in self.shapes()[:2]]

    def expected(self, values: list[np.ndarray]) -> np.ndarray:
        """C by numpy."""
        wide = [
            (v.view(np.uint8) if cast == "extui" else v).astype(np.float64)
            for v, cast in zip(values, self.casts, strict=True)
        ]
        maps = [each.replace(",", "").replace(" ", "") for each in self.maps.split(";")]
        return np.einsum(f"{maps[0]},{maps[1]}->{maps[2]}", *wide)


CASES = {
    "f32": Case(NARROW, ("f32", "f32")),
    "columns along k": Case(NARROW, ("f32", "f32"), maps="m, k; n, k; m, n"),
    "whole columns along k": Case(
        NARROW, ("i32", "i32"), sizes=(21, 48, 64), maps="m, k; n, k; m, n"
    ),
    "widened bf16": Case(NARROW, ("bf16", "f32"), ("extf", "extf")),
    "widened unsigned": Case(NARROW, ("i8", "i32"), ("extui", "extsi")),
    "rows in one cache set": Case(NARROW, ("bf16", "f32"), ("extf", "extf"), (16, 20, 2048)),
    "few rows": Case(NARROW, ("f32", "f32"), sizes=(3, 45, 63)),
    "bf16 pairs": Case(DOTS, ("bf16", "f32"), ("extf", "extf")),
    "whole pairs": Case(DOTS, ("bf16", "f32"), ("extf", "extf"), (21, 45, 64)),
    "signed": Case(DOTS, ("i8", "i32"), ("extsi", "extsi")),
    "unsigned a": Case(DOTS, ("i8", "i32"), ("extui", "extsi")),
    "unsigned b": Case(DOTS, ("i8", "i32"), ("extsi", "extui")),
    "words of k": Case(
        DOTS, ("i8", "i32"), ("extsi", "extui"), (21, 48, 64), maps="m, k; n, k; m, n"
    ),
    "rows along m": Case(
        DOTS, ("i8", "i32"), ("extsi", "extsi"), (21, 48, 66), maps="k, m; n, k; m, n"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_pass_keeps_the_product(name):
    case = CASES[name]
    module, values = import_mlir(case.text()), CASES[name].values()
    AssignTargetPass(facts=case.facts).apply(Context(), module)
    for number, each in enumerate(PASSES):
        each().apply(Context(), module)
        left = [op for op in OPS[number:] if op in str(module)]
        assert left == [op for op in OPS[number:] if op != "panel.pack" or "few" not in name]
        out = np.asarray(irees.compile(module.clone(), target="reference")(*values))
        np.testing.assert_array_equal(out, case.expected(values))
