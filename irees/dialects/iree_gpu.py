"""
The `iree_gpu` dialect, only the codegen configs that passes for CPU and GPU encounter.

Names are IREE's (`compiler/src/iree/compiler/Codegen/Dialect/GPU/IR`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Dialect, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition

from irees.dialects.iree_codegen import EntriesSyntax, KeyedSyntax


@irdl_attr_definition
class DerivedThreadConfigAttr(ParametrizedAttribute):
    """A lowering config whose tile sizes are derived from the op and the target."""

    name = "iree_gpu.derived_thread_config"


@irdl_attr_definition
class GpuLoweringConfigAttr(EntriesSyntax, ParametrizedAttribute):
    """Tile sizes, `padding` and the like by name (IREE: iree_gpu.lowering_config)."""

    name = "iree_gpu.lowering_config"

    entries: DictionaryAttr


@irdl_attr_definition
class GpuPipelineAttr(KeyedSyntax, ParametrizedAttribute):
    """The pass pipeline that compiles a kernel (IREE: iree_gpu.pipeline)."""

    name = "iree_gpu.pipeline"

    entries: DictionaryAttr


IreeGpu = Dialect("iree_gpu", [], [DerivedThreadConfigAttr, GpuLoweringConfigAttr, GpuPipelineAttr])
