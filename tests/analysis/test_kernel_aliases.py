"""Which buffers of a kernel are read and written as if it had no others."""

from __future__ import annotations

import pytest
from xdsl.ir import BlockArgument
from xdsl.parser import Parser

from irees.analysis.kernel_aliases import dispatches_of, exclusive_buffers
from irees.dialects import get_context
from irees.dialects.flow import ExecutableOp

COPY = """
      %0 = memref.load %x[%i] : memref<16xf32>
      memref.store %0, %y[%i] : memref<16xf32>"""
UPDATE = """
      %0 = memref.load %x[%i] : memref<16xf32>
      %1 = memref.load %y[%i] : memref<16xf32>
      %2 = arith.addf %0, %1 : f32
      memref.store %2, %y[%i] : memref<16xf32>"""
OWN = """
      %own = memref.alloc() : memref<16xf32>
      %0 = memref.load %x[%i] : memref<16xf32>
      memref.store %0, %own[%i] : memref<16xf32>
      %1 = memref.load %own[%i] : memref<16xf32>
      memref.store %1, %y[%i] : memref<16xf32>"""
CHOSEN = """
      %c = arith.constant true
      %0 = memref.load %x[%i] : memref<16xf32>
      %z = scf.if %c -> (memref<16xf32>) {
        scf.yield %x : memref<16xf32>
      } else {
        scf.yield %y : memref<16xf32>
      }
      memref.store %0, %z[%i] : memref<16xf32>"""
VIEWED = """
      %v = memref.subview %y[0] [16] [1] : memref<16xf32> to memref<16xf32>
      %0 = memref.load %x[%i] : memref<16xf32>
      memref.store %0, %v[%i] : memref<16xf32>"""

FRESH = """
  %y = memref.alloc() : memref<16xf32>
  stream.cmd.dispatch @k::@k(%a, %y) : memref<16xf32>, memref<16xf32>"""
ARGUMENTS = """
  stream.cmd.dispatch @k::@k(%a, %b) : memref<16xf32>, memref<16xf32>"""
CARRIED = """
  %y = memref.alloc() : memref<16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%z = %y) -> (memref<16xf32>) {
    stream.cmd.dispatch @k::@k(%z, %y) : memref<16xf32>, memref<16xf32>
    scf.yield %z : memref<16xf32>
  }"""
SAME = """
  %y = memref.alloc() : memref<16xf32>
  %z = memref.reinterpret_cast %y to offset: [0], sizes: [16], strides: [1] : memref<16xf32> to memref<16xf32>
  stream.cmd.dispatch @k::@k(%z, %y) : memref<16xf32>, memref<16xf32>"""


def arena(first: int, second: int) -> str:
    """Two views of 64 bytes."""
    return f"""
  %arena = memref.alloc() : memref<128xi8>
  %first = arith.constant {first} : index
  %second = arith.constant {second} : index
  %x = memref.view %arena[%first][] : memref<128xi8> to memref<16xf32>
  %y = memref.view %arena[%second][] : memref<128xi8> to memref<16xf32>
  stream.cmd.dispatch @k::@k(%x, %y) : memref<16xf32>, memref<16xf32>"""


def exclusive(body: str, host: str) -> str:
    """The names of the exclusive arguments."""
    text = f"""
flow.executable @k {{
  func.func @k(%x: memref<16xf32>, %y: memref<16xf32>) {{
    scf.forall (%i) in (16) {{{body}
    }}
    func.return
  }}
}}
func.func @main(%a: memref<16xf32>, %b: memref<16xf32>) {{{host}
  func.return
}}"""
    module = Parser(get_context(), text).parse_module()
    (loop,) = (op for op in module.walk() if op.name == "scf.forall")
    (executable,) = (op for op in module.walk() if isinstance(op, ExecutableOp))
    found = exclusive_buffers(loop, dispatches_of(module).get(executable.sym_name.data, ()))
    assert all(isinstance(value, BlockArgument) for value in found)
    return "".join(sorted("xy"[value.index] for value in found))


CASES = {
    "a fresh result": (COPY, FRESH, "xy"),
    "a view of it": (VIEWED, FRESH, "xy"),
    "memory of a workgroup": (OWN, FRESH, "xy"),
    "updated in place": (UPDATE, FRESH, "x"),
    "either": (CHOSEN, FRESH, ""),
    "arguments of the program": (COPY, ARGUMENTS, ""),
    "only one dispatch": (COPY, FRESH + ARGUMENTS, ""),
    "no dispatch": (COPY, "", ""),
    "carried by a loop": (COPY, CARRIED, ""),
    "two views of one buffer": (COPY, SAME, ""),
    "apart in the arena": (COPY, arena(0, 64), "xy"),
    "apart the other way": (COPY, arena(64, 0), "xy"),
    "one byte in common": (COPY, arena(0, 63), ""),
}


@pytest.mark.parametrize("name", CASES)
def test_exclusive_buffers(name):
    body, host, expected = CASES[name]
    assert exclusive(body, host) == expected


def test_what_is_only_read_may_be_the_same():
    body = """
      %0 = memref.load %x[%i] : memref<16xf32>
      %1 = memref.load %y[%i] : memref<16xf32>"""
    assert exclusive(body, SAME) == "xy"
