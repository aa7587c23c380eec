"""
The `iree_cpu` dialect, only the codegen configs that input programs may have on their ops.

Names are IREE's (`compiler/src/iree/compiler/Codegen/Dialect/CPU/IR`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Dialect, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition

from irees.dialects.iree_codegen import KeyedSyntax


@irdl_attr_definition
class CpuLoweringConfigAttr(KeyedSyntax, ParametrizedAttribute):
    """Tile sizes by level (IREE: iree_cpu.lowering_config)."""

    name = "iree_cpu.lowering_config"

    entries: DictionaryAttr


@irdl_attr_definition
class CpuPipelineAttr(KeyedSyntax, ParametrizedAttribute):
    """The pass pipeline that compiles a kernel (IREE: iree_cpu.pipeline)."""

    name = "iree_cpu.pipeline"

    entries: DictionaryAttr


IreeCpu = Dialect("iree_cpu", [], [CpuLoweringConfigAttr, CpuPipelineAttr])
