"""
The reference interpreter: what every op that irees accepts means, at every phase.

It is the oracle of the tests and folds constants for the compiler, so it is exact before it is
quick: f32 is computed in f32, f16 and bf16 are computed in f32 and rounded after each op, integers
wrap, and every case that MLIR leaves undefined has the result that the compiled program gives
(`irees/backends/common/irees_support.h`). Reductions are done in the order of the loops.

An op is *prepared* once: its handler looks at attributes and types and returns a function from
the values of operands to the values of results, which then runs as often as the op does. Handlers
are found by op name (`registry.py`) in one file per dialect. Two thirds of them are numpy functions
that take scalars and whole arrays alike; that is how `structured.py` runs the body of a linalg op
on the whole iteration space at once.

Values: numpy scalars, numpy arrays for tensors and vectors (never changed in place), `MemRef` for
memory. Memory that was not written reads as NaN or as a large odd number. Loads and stores of
memrefs outside their bounds raise `RuntimeTrap`, because the compiler must have made them
impossible; `tensor.extract` clamps and `tensor.insert` does nothing there, as compiled.
"""

from irees.interpreters.interpreter import Interpreter, evaluate

__all__ = ["Interpreter", "evaluate"]
