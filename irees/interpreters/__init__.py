"""
The reference interpreter: defines the semantics of every op that irees accepts, at every phase.

It is the oracle of the tests and the compiler's constant folder, so exactness comes before speed.
f32 is computed in f32; f16 and bf16 are computed in f32 and rounded after each op; integers wrap.
Cases that MLIR leaves undefined have the same result as in the compiled program
(`irees/backends/common/irees_support.h`). Reductions run in loop order.

An op is *prepared* once: its handler inspects attributes and types, and returns a function from
operand values to result values, which runs at each execution of the op. Handlers are registered by
op name (`registry.py`), in one file per dialect. Two thirds of them are numpy functions that take
scalars and arrays alike. With these, `structured.py` runs the body of a linalg op on the whole
iteration space at once.

Values are numpy scalars, numpy arrays for tensors and vectors (never modified in place), and
`MemRef` for memory. Uninitialized memory reads as NaN or as a large odd number. Out-of-bounds loads
and stores of memrefs raise `RuntimeTrap`, because they are compiler bugs. Out of bounds,
`tensor.extract` clamps its indices and `tensor.insert` does nothing, as in compiled code.
"""

from irees.interpreters.interpreter import Interpreter, evaluate

__all__ = ["Interpreter", "evaluate"]
