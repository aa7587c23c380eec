"""Higher-order operators: regions that PyTorch keeps as graphs of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from irees.errors import UnsupportedError

if TYPE_CHECKING:
    from .importing import GraphImporter


def lower_higher_order(importer: GraphImporter, node: torch.fx.Node, env: dict[Any, Any]) -> Any:
    """The results of a higher-order operator. Raises UnsupportedError for one not taken."""
    name = str(node.target)
    args = importer._argument(node.args, env)
    if name == "wrap_with_set_grad_enabled":
        return importer.run(args[1], args[2:])
    if name == "wrap_with_autocast":
        return importer.run(args[4], args[5:])
    raise UnsupportedError(f"the higher-order operator {name} is not supported")
