"""The dialect `acme`."""

from xdsl.ir import Dialect

from acme_ops.smooth import SmoothOp
from acme_ops.squash import SquashOp

Acme = Dialect("acme", [SmoothOp, SquashOp])
