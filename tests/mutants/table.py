"""
The faults that the tests exist to find: each known to have been made, in IREE or while writing this.

A mutant puts one of them back: the only place where `old` stands in `file` becomes `new`. One of
its tests must fail then. `old` that is not there any more is an error, so the table follows the
code. Numbers are those of the case studies: 0 sort and topk, 1 reshapes into stores, 2 fusion under
a memory limit, 3 views, bounds and padding, 4 devices,
5 leaving rewrites out, 6 blocked layouts, 7 what reductions take in, 8 dot products, 9 threads of a GPU,
10 paddings, 11 groups of loops, 12 control flow and arithmetic, 13 what programs mutate,
14 operators of PyTorch, 30 answers that IREE gives otherwise, and what got through. `F` is of
`tests/fuzzing`.
"""

from __future__ import annotations

from accesses import MUTANTS as ACCESS_MUTANTS
from mutant import Mutant

UNUSED = "irees/transforms/utils/unused_results.py"
UNUSED_TESTS = ("tests/properties/test_unused_results.py",)
SLICES = "irees/transforms/codegen/common/_interface_slices.py"
SLICES_TEST = "tests/transforms/codegen/common/test_interface_reshapes.py"
FOLDED = "filecheck/transforms/codegen/common/fold_reshape_into_interface_tensor.mlir"
ACCESSES = "irees/transforms/codegen/common/_memory_accesses.py"
ACCESSES_TESTS = ("tests/transforms/codegen/common/test_memory_views.py",)
GATHER = "irees/transforms/codegen/common/lower_gather.py"
GATHER_TESTS = ("tests/transforms/codegen/common/test_lower_gather.py",)
SIBLING_TESTS = "tests/properties/test_sibling_reductions.py"
PADDING_TESTS = ("tests/properties/test_paddings.py",)
PAD = "irees/transforms/codegen/common/pad_operands.py"
PAD_TESTS = ("tests/properties/test_padding.py",)
AFFINITY_OPS = "irees/analysis/_affinity_ops.py"
AFFINITY_TESTS = ("tests/analysis/test_affinity.py",)
FOLLOWERS = "irees/transforms/global_opt/_layout_followers.py"
SURROUNDINGS = "irees/transforms/codegen/common/_surroundings.py"
SURROUNDINGS_TESTS = ("tests/transforms/codegen/cpu/test_surroundings.py",)
EPILOGUE_TESTS = ("tests/properties/test_register_epilogues.py",)
WINOGRAD = "irees/transforms/global_opt/convert_conv2d_to_winograd.py"
WINOGRAD_TESTS = ("tests/properties/test_winograd.py",)
DOTS = "irees/transforms/codegen/cpu/_contraction_dots.py"
DOTS_TESTS = ("tests/properties/test_dot_products.py",)
THREADS = "irees/transforms/codegen/gpu/gpu_distribute_to_threads.py"
THREADS_TESTS = ("filecheck/transforms/codegen/gpu/gpu_distribute_to_threads.mlir",)
EMULATED = "tests/backends/cuda/test_emulated.py"
SCATTERS = "tests/backends/cuda/test_scatters.py"
SELECTION = "tests/backends/cuda/test_selection.py"
WARPGROUPS = "tests/backends/cuda/test_warpgroups.py"
CONTROL_FLOW_TESTS = ("tests/properties/test_control_flow.py",)
MERGED_TESTS = ("tests/properties/test_merged_sums.py",)
LAYOUT_TESTS = ("tests/properties/test_blocked_layouts.py",)

MUTANTS = (
    Mutant(
        "S0a",
        "the arguments of a comparator stay those of a dropped operand",
        UNUSED,
        """\
                rewriter.erase_block_argument(args[2 * i + 1])
                rewriter.erase_block_argument(args[2 * i])
""",
        """\
                rewriter.erase_block_argument(op.body.block.args[-1])
                rewriter.erase_block_argument(op.body.block.args[-1])
""",
        UNUSED_TESTS,
    ),
    Mutant(
        "S0b",
        "a key that only the comparator needs is dropped",
        UNUSED,
        "if result.uses or args[2 * i].uses or args[2 * i + 1].uses",
        "if result.uses or args[2 * i].uses and not args[2 * i + 1].uses",
        UNUSED_TESTS,
    ),
    Mutant(
        "S0c",
        "results are counted from the wrong one",
        UNUSED,
        "replacements[i] = new.results[position]\n        rewriter.replace(op, new, replacements)",
        "replacements[i] = new.results[position - 1]\n"
        "        rewriter.replace(op, new, replacements)",
        UNUSED_TESTS,
    ),
    Mutant(
        "S0d",
        "a result that is used is put into private memory",
        "irees/transforms/codegen/gpu/gpu_alloc_private_memory_for_dps_ops.py",
        "if result.uses or not isinstance(kind, TensorType):",
        "if not isinstance(kind, TensorType):",
        ("filecheck/transforms/codegen/gpu/gpu_alloc_private_memory_for_dps_ops.mlir",),
    ),
    Mutant(
        "S0e",
        "the types of the results are those of the old op",
        UNUSED,
        """\
        new = ext.SortOp.of(inputs, outputs, {"dimension": op.dimension}, body)
""",
        """\
        new = ext.SortOp.of(inputs, outputs, {"dimension": op.dimension}, body)
        for made, old in zip(new.results, op.results, strict=False):
            rewriter.replace_value_with_new_type(made, old.type)
""",
        UNUSED_TESTS,
    ),
    Mutant(
        "S0f",
        "a body that stores what it computes loses it",
        UNUSED,
        """\
            if not is_side_effect_free(use.operation):
                return False
""",
        "",
        ("filecheck/transforms/global_opt/erase_unused_results.mlir",),
    ),
    Mutant(
        "S1a",
        "a part of a dim is taken for all of it",
        SLICES,
        "return size in (Sum.of(self.shape[dim]), Sum.of(said))",
        "return True",
        (FOLDED,),
    ),
    Mutant(
        "S1b",
        "only static sizes are compared with the dim",
        SLICES,
        "return size in (Sum.of(self.shape[dim]), Sum.of(said))",
        "return size.constant() is None or size in (Sum.of(self.shape[dim]), Sum.of(said))",
        (FOLDED,),
    ),
    Mutant(
        "S1c",
        "the offset is not divided by what is inside",
        SLICES,
        "offset = Sum.of(s.offsets[dim]).floordiv(inner).build(self.inside)",
        "offset = Sum.of(s.offsets[dim]).build(self.inside)",
        (FOLDED,),
    ),
    Mutant(
        "S1d",
        "a store that drops dims is read as one that keeps them",
        SLICES,
        """\
            sizes,
            kept,
        )
""",
        """\
            sizes,
            list(range(len(kept))),
        )
""",
        (f"{SLICES_TEST}::test_dims_are_those_of_the_tensor",),
    ),
    Mutant(
        "S1e",
        "strides are not looked at",
        SLICES,
        "if kept is None or any(s != 1 for s in op.static_strides.get_values()):",
        "if kept is None:",
        (FOLDED,),
    ),
    Mutant(
        "S2a",
        "shared memory is counted by the tile and not by the whole buffer",
        "irees/transforms/utils/footprint.py",
        "self.known += prod(shape) * width",
        "self.known += prod(shape[1:]) * width",
        ("filecheck/transforms/codegen/gpu/gpu_check_resource_usage.mlir",),
    ),
    Mutant(
        "S2b",
        "a tile that is too large for the stack is an error",
        "irees/transforms/codegen/common/tile_and_distribute.py",
        """\
        else:
            op = memref.AllocOp(values, [], private)
""",
        """\
        else:
            raise ValueError("the tile is too large")
""",
        ("filecheck/transforms/codegen/common/tile_and_distribute.mlir",),
    ),
    Mutant(
        "S2c",
        "every tile gets a tensor of its own instead of a slice of the iteration argument",
        "irees/transforms/codegen/common/tile_and_fuse.py",
        """\
                return slice_
        return self.slice(output, starts, sizes)
""",
        """\
                dynamic = [n for n in sizes if isinstance(n, SSAValue)]
                return self.inside.insert(tensor.EmptyOp(dynamic, slice_.type)).results[0]
        return self.slice(output, starts, sizes)
""",
        ("tests/properties/test_tile_and_fuse.py",),
    ),
    Mutant(
        "S2d",
        "softmax forgets to take off the largest number",
        "irees/transforms/global_opt/_softmax.py",
        "return s.op(math.ExpOp, s.op(arith.SubfOp, s.cast(v[0], wide), v[1]))",
        "return s.op(math.ExpOp, s.cast(v[0], wide))",
        (
            "tests/transforms/global_opt/test_decompositions.py::"
            "test_softmax_is_the_same_with_and_without_fusion",
        ),
    ),
    Mutant(
        "S2e",
        "what fits exactly does not fit",
        "irees/transforms/codegen/gpu/gpu_check_resource_usage.py",
        "if used > self.limit:",
        "if used >= self.limit:",
        ("filecheck/transforms/codegen/gpu/gpu_check_resource_usage.mlir",),
    ),
    Mutant(
        "S3a",
        "a gather through a view forgets the stride",
        ACCESSES,
        "self.scale *= stride",
        "pass",
        ("filecheck/transforms/codegen/common/fold_memref_alias_ops.mlir",),
    ),
    Mutant(
        "S3b",
        "the offset of the innermost dim of a view is forgotten",
        ACCESSES,
        "indices = [Sum.of(o) for o in offsets]",
        "indices = [*(Sum.of(o) for o in offsets[:-1]), Sum.of(0)]",
        ACCESSES_TESTS,
    ),
    Mutant(
        "S3c",
        "the mask of a gather of neighbours is dropped",
        GATHER,
        """\
        place = self._place(pattern.start, self.at)
        if all_on:
            return self.at.insert(vector.LoadOp""",
        """\
        place = self._place(pattern.start, self.at)
        if True:
            return self.at.insert(vector.LoadOp""",
        ("filecheck/transforms/codegen/common/lower_gather.mlir",),
    ),
    Mutant(
        "S3d",
        "a gather of several places is taken for one of one place",
        GATHER,
        "if numbers == [numbers[0] + step * lane for lane in range(len(numbers))]:",
        "if numbers[:1] == [numbers[0] + step * lane for lane in range(len(numbers))][:1]:",
        GATHER_TESTS,
    ),
    Mutant(
        "S3e",
        "a quotient that is rounded towards zero is bounded by the one that is rounded down",
        "irees/analysis/_bound_rules.py",
        "return Limits((a.floordiv(b.constant),), (a.ceildiv(b.constant),))",
        "return Limits((a.floordiv(b.constant),), (a.floordiv(b.constant),))",
        ("tests/analysis/test_value_bounds.py",),
    ),
    Mutant(
        "S3f",
        "a dim without a bound is padded to 0",
        PAD,
        """\
            if bound is None or bound > LARGEST:
                return f"loop {loop} has no known upper bound"
""",
        """\
            if bound is None or bound > LARGEST:
                bound = 0
""",
        PAD_TESTS,
    ),
    Mutant(
        "S3g",
        "what cannot be padded fails the compilation",
        PAD,
        """\
                remark("missed", NAME, inner, f"not padded: {found}")
                continue
""",
        """\
                raise ValueError(found)
""",
        PAD_TESTS,
    ),
    Mutant(
        "S4a",
        "an export without an affinity pins its operand to the default device",
        AFFINITY_OPS,
        "return _attribute(op, how.attribute)\n",
        "found = _attribute(op, how.attribute)\n"
        "        return found or (default_affinity(op) if how.pins else None)\n",
        AFFINITY_TESTS,
    ),
    Mutant(
        "S4b",
        "a cast forgets where the value is",
        AFFINITY_OPS,
        """    "tensor.cast": _first,\n""",
        "",
        AFFINITY_TESTS,
    ),
    Mutant(
        "S4c",
        "what is inferred comes before what is written",
        "irees/analysis/_affinity_rules.py",
        """\
        if (explicit := explicit_affinity(op)) is not None:
            return Rule({explicit})
        operands = """,
        """\
        operands = """,
        AFFINITY_TESTS,
    ),
    Mutant(
        "S4d",
        "of several producers the first in an order without meaning decides",
        "irees/analysis/affinity.py",
        "return found.pop() if len(found) == 1 else None",
        "return found.pop() if found else None",
        AFFINITY_TESTS,
    ),
    Mutant(
        "S4e",
        "a value that is sent to a device twice is sent twice",
        "irees/transforms/devices/place_transfers.py",
        "            self.sent[value, device] = builder.insert(transfer).results[0]\n"
        "        return self.sent[value, device]\n",
        "            return builder.insert(transfer).results[0]\n"
        "        return self.sent[value, device]\n",
        ("tests/properties/test_device_placement.py",),
    ),
    Mutant(
        "S4f",
        "a transfer to where the value is copies it",
        "irees/transforms/devices/place_transfers.py",
        "        if self.placement.home(value) == device:\n            return value\n",
        "",
        ("tests/properties/test_device_placement.py",),
    ),
    Mutant(
        "S4g",
        "ops of one device with effects change places",
        "irees/transforms/devices/_segments.py",
        "                own.add(last_effect[item.device])\n",
        "                pass\n",
        ("tests/test_devices.py",),
    ),
    Mutant(
        "S4h",
        "what is passed around a loop is where it comes from first",
        "irees/transforms/devices/_placement.py",
        "                    if argument in said:\n"
        "                        reads[argument].append(operand)\n",
        "                    if argument in said and not reads[argument]:\n"
        "                        reads[argument].append(operand)\n",
        ("tests/properties/test_device_placement.py",),
    ),
    Mutant(
        "S4i",
        "a value that only goes around a loop is sent",
        "irees/transforms/devices/_dead.py",
        "            for value, argument in edges:\n"
        "                passed[argument].append(value)\n",
        "            todo += [value for value, _ in edges]\n"
        "            values.update(argument for _, argument in edges)\n",
        ("filecheck/transforms/devices/place_transfers.mlir",),
    ),
    Mutant(
        "S4j",
        "where several devices are left, the first is taken",
        "irees/transforms/devices/_placement.py",
        "                if least is None or cost < least:\n",
        "                if least is None:\n",
        ("filecheck/transforms/devices/place_transfers.mlir",),
    ),
    Mutant(
        "S5a",
        "a rewrite is applied without asking whether it may be",
        "irees/transforms/global_opt/fold_constants.py",
        'if new is not None and may_rewrite(self.name, inner, f"fold of {inner.name}"):',
        "if new is not None:",
        ("tests/test_degradation.py::test_every_optional_pass_counts",),
    ),
    Mutant(
        "S5b",
        "patterns that undo each other are driven for ever",
        "irees/transforms/utils/greedy.py",
        "        if self.fuel.is_spent:\n            return\n",
        "        if self.fuel.left < -100:\n            raise RecursionError\n",
        ("tests/test_rewrites.py",),
    ),
    Mutant(
        "S6a",
        "the index of a loop that was cut counts blocks",
        FOLLOWERS,
        "value = b.value(b.add(b.mul(value, blocks[loop]), inner))",
        "value = b.value(b.add(value, inner))",
        LAYOUT_TESTS,
    ),
    Mutant(
        "S6b",
        "a slice of channels begins inside of a block",
        FOLLOWERS,
        "if inside.block != block or stride != 1 or offset < 0 or offset % block or size % block:",
        "if inside.block != block or stride != 1 or offset < 0 or size % block:",
        ("filecheck/transforms/global_opt/propagate_blocked_layouts.mlir",),
    ),
    Mutant(
        "S6c",
        "an op that wants its channels elsewhere than its neighbours gets them where they are",
        "irees/transforms/global_opt/_layout_plan.py",
        "if isinstance(found, Node) and self.disagrees(found):",
        "if False:",
        ("filecheck/transforms/global_opt/propagate_blocked_layouts.mlir",),
    ),
    Mutant(
        "S6d",
        "what a value is taken from keeps the sign of its scale",
        "irees/transforms/global_opt/_channel_constants.py",
        "scale = b.op(arith.NegfOp, scale) if step.op.name == arith.SubfOp.name else scale",
        "pass",
        ("tests/properties/test_affine_epilogues.py",),
    ),
    Mutant(
        "S7a",
        "a fill is dropped though the sum after it writes every second row only",
        SURROUNDINGS,
        "    return len(set(loops)) == len(written.results)\n",
        "    return True\n",
        SURROUNDINGS_TESTS,
    ),
    Mutant(
        "S7b",
        "a fill is dropped before it is known that the sum has a vector form",
        "irees/transforms/codegen/cpu/_vector_nest.py",
        "            self.fill, self.start = fill[0], fill[1].clone()\n"
        "            Rewriter.insert_op(self.start, InsertPoint.before(self.op))\n",
        "            self.start = fill[1].clone()\n"
        "            Rewriter.insert_op(self.start, InsertPoint.before(self.op))\n"
        "            Rewriter.erase_op(fill[0])\n",
        SURROUNDINGS_TESTS,
    ),
    Mutant(
        "S7c",
        "the last slice of an empty K begins before the first",
        "irees/transforms/codegen/cpu/_contraction_nest.py",
        "last = max(known - 1, 0) // deep * deep",
        "last = (known - 1) // deep * deep",
        SURROUNDINGS_TESTS,
    ),
    Mutant(
        "S7d",
        "strict sums run along memory",
        "irees/transforms/codegen/cpu/_contraction_plan.py",
        "if reassociate or isinstance(element, IntegerType):",
        "if True:",
        SURROUNDINGS_TESTS,
    ),
    Mutant(
        "S7e",
        "what others read is not stored when a consumer takes it from registers",
        SURROUNDINGS,
        "    return any(user not in known for user in uses)\n",
        "    return False\n",
        SURROUNDINGS_TESTS,
    ),
    Mutant(
        "S7f",
        "a row shared by all columns of a block is the first vector of it",
        "irees/transforms/codegen/cpu/_contraction_epilogue.py",
        "                shared[i, v] = lane\n",
        "                shared.update({(i, u): lane for u in range(vectors)})\n",
        EPILOGUE_TESTS,
    ),
    Mutant(
        "S7g",
        "an image that was padded with anything is padded with zeros instead",
        WINOGRAD,
        "isinstance(around, linalg.GenericOp) and is_zero_fill(around):",
        "isinstance(around, linalg.GenericOp):",
        ("filecheck/transforms/global_opt/convert_conv2d_to_winograd.mlir",),
    ),
    Mutant(
        "S7h",
        "rows that no window reaches come into a tile",
        WINOGRAD,
        "if seen != shape(image):",
        "if False:",
        WINOGRAD_TESTS,
    ),
    Mutant(
        "S7i",
        "what others read is not stored when a sum makes it",
        "irees/transforms/codegen/cpu/_vector_nest.py",
        "        if self.producer.keeps_source:\n",
        "        if False:\n",
        SURROUNDINGS_TESTS,
    ),
    Mutant(
        "S7j",
        "a slice of several groups of K begins at a point of the innermost",
        "irees/transforms/codegen/cpu/_contraction_plan.py",
        "at.mul(k0, self.b.steps[self.k[0][-1]])",
        "at.mul(k0, self.b.steps[self.k[-1][-1]])",
        ("tests/transforms/codegen/cpu/test_contraction_prefetch.py",),
    ),
    Mutant(
        "S7ah",
        "columns are taken for neighbours by their first and last alone",
        "irees/transforms/codegen/cpu/_contraction_packing.py",
        "close, lane, b = for_loop(at, 1, lanes, 1, [always])",
        "close, lane, b = for_loop(at, lanes - 1, lanes, 1, [always])",
        ("tests/transforms/codegen/cpu/test_lower_contractions.py",),
    ),
    Mutant(
        "S15a",
        "a cast to a size is not checked",
        "irees/dialects/shape_relations.py",
        '    "tensor.cast": cast,',
        '    "tensor.cast": lambda op: iter(()),',
        ("tests/test_filecheck.py",),
    ),
    Mutant(
        "S15b",
        "the largest index of a map is one more than what is checked",
        "irees/transforms/global_opt/_window_checks.py",
        "self._require(self.b.add(found.high, 1), self.extent, self.b)",
        "self._require(found.high, self.extent, self.b)",
        ("tests/violations/test_violations.py",),
    ),
    Mutant(
        "S15c",
        "what an output keeps is lost",
        "irees/transforms/global_opt/keep_inits.py",
        "if argument.uses or writes_all(op, op.outputs[number], indexing):",
        "if True:",
        ("tests/violations/test_violations.py",),
    ),
    Mutant(
        "S15d",
        "what was never written is returned",
        "irees/transforms/global_opt/initialize_empties.py",
        "if isinstance(inner, tensor.EmptyOp) and is_read(inner.tensor):",
        "if False:",
        ("tests/test_filecheck.py",),
    ),
    Mutant(
        "S15e",
        "a sum holds a place of its output in a register while it goes along it",
        "irees/transforms/codegen/cpu/_vector_nest.py",
        "            parallel, reduction = [*parallel, *reduction], []",
        "            pass",
        ("tests/violations/test_violations.py",),
    ),
    Mutant(
        "S7l",
        "every slice of K counts C as zeros",
        "irees/transforms/codegen/cpu/_contraction_nest.py",
        'return at.insert(arith.CmpiOp(k0, at.value(0), "eq")).results[0]',
        'return at.insert(arith.CmpiOp(k0, k0, "eq")).results[0]',
        ("tests/transforms/codegen/cpu/test_lower_contractions.py",),
    ),
    Mutant(
        "S7o",
        "nothing is left of the last tile",
        "irees/transforms/utils/shapes.py",
        "return whole % block if constant_value(offset.rhs) == tile else None",
        "return tile % block if constant_value(offset.rhs) == tile else None",
        ("tests/transforms/codegen/cpu/test_lower_contractions.py",),
    ),
    Mutant(
        "S7m",
        "no panel but the first strip's own is asked for",
        "irees/transforms/codegen/cpu/_contraction_prefetch.py",
        "start = at.mul(at.add(columns.start, plan.columns), plan.depth)",
        "start = at.mul(columns.start, plan.depth)",
        ("tests/transforms/codegen/cpu/test_contraction_prefetch.py",),
    ),
    Mutant(
        "S7p",
        "each step of K asks for what it reads itself",
        "irees/transforms/codegen/cpu/_contraction_prefetch.py",
        "later, asked = at.add(column, step), -line",
        "later, asked = column, -line",
        ("tests/transforms/codegen/cpu/test_contraction_prefetch.py",),
    ),
    Mutant(
        "S7q",
        "a row that is left of four quarters is not summed",
        "irees/transforms/codegen/cpu/_vector_nest.py",
        "if remainder(size, points) == 0:",
        "if remainder(size, points) is not None:",
        ("tests/transforms/codegen/cpu/test_streams.py",),
    ),
    Mutant(
        "S7r",
        "rows that count through two loops are those of the inner one",
        "irees/transforms/utils/shapes.py",
        "found[loop] = at.rem(rest, sizes[loop])",
        "found[loop] = rest",
        ("tests/transforms/codegen/cpu/test_contraction_rows.py",),
    ),
    Mutant(
        "S7s",
        "each strip of turns starts at the first",
        "irees/transforms/codegen/cpu/_contraction_nest.py",
        "b.add(rows.turn, turn)",
        "turn",
        ("tests/transforms/codegen/cpu/test_contraction_rows.py",),
    ),
    Mutant(
        "S7t",
        "no register is left for the next row's broadcast",
        "irees/analysis/register_blocking.py",
        "spare = 0 if embeds else BROADCASTS",
        "spare = 0",
        ("tests/transforms/codegen/cpu/test_contraction_rows.py",),
    ),
    Mutant(
        "S7u",
        "the second of two tiles reads what the first does",
        "irees/transforms/codegen/cpu/_transposing_nest.py",
        "at.add(ivs[self.along], t * lanes)",
        "ivs[self.along]",
        ("tests/transforms/codegen/cpu/test_transposing.py",),
    ),
    Mutant(
        "S7v",
        "the first slice of K has the epilogue",
        "irees/transforms/codegen/cpu/_contraction_nest.py",
        'CmpiOp(at.value(k0), at.value(last), "eq")',
        'CmpiOp(at.value(k0), at.value(0), "eq")',
        ("tests/transforms/codegen/cpu/test_contraction_rows.py",),
    ),
    Mutant(
        "S7w",
        "ops whose operands differ in their types are alike",
        "irees/verification.py",
        "tuple([value.type for value in operands]),",
        "",
        ("tests/test_verification.py",),
    ),
    Mutant(
        "S7x",
        "chains take turns in loops that read what they write",
        "irees/transforms/codegen/cpu/interleave_chains.py",
        "return not read.isdisjoint(written)",
        "return False",
        ("filecheck/transforms/codegen/cpu/interleave_chains.mlir",),
    ),
    Mutant(
        "S7y",
        "tiles begin as far behind a line as before",
        "irees/transforms/codegen/cpu/_transposing_nest.py",
        "inner.sub(i, self.back)",
        "inner.add(i, self.back)",
        ("tests/transforms/codegen/cpu/test_transposing.py",),
    ),
    Mutant(
        "S7z",
        "what an inner loop changes is computed in front of it",
        "irees/transforms/codegen/cpu/_vector_nest.py",
        "self._compute({*loops, *self.reduction}, ivs, at)",
        "self._compute({loops[0], *self.reduction}, ivs, at)",
        ("tests/transforms/codegen/cpu/test_vectorize_structured_ops.py",),
    ),
    Mutant(
        "S7aa",
        "one thread takes more panels",
        "irees/transforms/codegen/cpu/_contraction_tiles.py",
        "if wanted == 1 or most == 0:",
        "if True:",
        ("filecheck/transforms/codegen/cpu/select_strategy.mlir",),
    ),
    Mutant(
        "S7ad",
        "who is through with its share of the workgroups leaves the others theirs",
        "irees/runtime/native/runtime.c",
        "i < pool.parts; i++, from",
        "i < 1; i++, from",
        ("tests/runtime/test_native.py",),
    ),
    Mutant(
        "S7ae",
        "weights that nothing packs are cut into one tile for each thread",
        "irees/transforms/codegen/cpu/_contraction_tiles.py",
        "GRAINS if unpacked",
        "1 if unpacked",
        ("filecheck/transforms/codegen/cpu/select_strategy.mlir",),
    ),
    Mutant(
        "S7af",
        "beside the points of a tile the same tile is summed up again",
        "irees/transforms/codegen/cpu/pipeline_workgroups.py",
        "inside.add(turn.args[0], 1)",
        "inside.add(turn.args[0], 0)",
        ("filecheck/transforms/codegen/cpu/pipeline_workgroups.mlir",),
    ),
    Mutant(
        "S7ag",
        "a power by a table forgets the low part of log2(e)",
        "irees/transforms/codegen/common/expand_math.py",
        "sign * -1.925963033500011e-08",
        "sign * 0.0",
        ("filecheck/transforms/codegen/common/expand_math.mlir",),
    ),
    Mutant(
        "S7ac",
        "all turns that become one but the first are the second",
        "irees/transforms/codegen/cpu/interleave_chains.py",
        "at.add(block.args[0], turn * step)",
        "at.add(block.args[0], step)",
        ("tests/transforms/codegen/cpu/test_interleave_chains.py",),
    ),
    Mutant(
        "S7ab",
        "a reciprocal that a row shares is divided by at each point",
        "irees/transforms/global_opt/fold_reciprocals.py",
        "if divisor is None or not changes_everywhere(op, divisor):",
        "if divisor is None:",
        (
            "filecheck/transforms/global_opt/fold_reciprocals.mlir",
            "tests/transforms/global_opt/test_fold_reciprocals.py",
        ),
    ),
    Mutant(
        "S7n",
        "a prefetch for a write is printed as -1",
        "irees/backends/common/print_memory.py",
        "int(bool(op.isWrite.value.data))",
        "int(op.isWrite.value.data)",
        ("tests/transforms/codegen/cpu/test_prefetch_streams.py",),
    ),
    Mutant(
        "S7k",
        "each part of some neighbours is looked at where the first one is",
        "irees/transforms/codegen/common/_selection.py",
        "look(ivs, d.add(begin, d.mul(part, parts[0])), parts, d)",
        "look(ivs, begin, parts, d)",
        ("tests/transforms/codegen/common/test_lower_linalg_ext_to_loops.py",),
    ),
    Mutant(
        "S8a",
        "what turned signs add to a column stays in it",
        DOTS,
        "return [at.insert(arith.SubiOp(zero, total)).results[0] for total in close(sums)]",
        "close(sums)\n    return [zero] * columns.vectors",
        DOTS_TESTS,
    ),
    Mutant(
        "S8b",
        "a last group of bf16 that is filled with +0 loses a sum of -0.0",
        DOTS,
        "padding(plan.dot, -0.0)",
        "padding(plan.dot, 0.0)",
        (f"{DOTS_TESTS[0]}::test_kernels_for_other_processors[avx512_bf16]",),
    ),
    Mutant(
        "S8c",
        "signed and unsigned change places where B is the unsigned one",
        DOTS,
        "*((b, a) if dot.swapped else (a, b))",
        "a, b",
        DOTS_TESTS,
    ),
    Mutant(
        "S9a",
        "a thread reads what the first one has written since",
        THREADS,
        "    for op in [o for o in block.ops if isinstance(o, memref.LoadOp)]:\n",
        "    for op in []:\n",
        THREADS_TESTS,
    ),
    Mutant(
        "S9b",
        "points that may write to one place are dealt out to threads",
        THREADS,
        "        if op.parent in together and Points(op).writes_apart():\n",
        "        if op.parent in together:\n",
        THREADS_TESTS,
    ),
    Mutant(
        "S9c",
        "equal keys of a network change places",
        "irees/transforms/codegen/gpu/_block_sort.py",
        "late = b.insert(arith.OrIOp(unequal, before)).results[0]",
        "late = b.insert(arith.OrIOp(unequal, unequal)).results[0]",
        (f"{EMULATED}::test_sorts_and_scatters",),
    ),
    Mutant(
        "S9d",
        "what is past the end of a reduction is multiplied by matrix instructions",
        "irees/transforms/codegen/gpu/_matrix_contraction.py",
        "if isinstance(self.total, int) and self.total % self.blocking.depth == 0:",
        "if True:",
        (f"{EMULATED}::test_matrix_instructions",),
    ),
    Mutant(
        "S9g",
        "what is past the end of a reduction is copied",
        "irees/transforms/codegen/gpu/_staged_contraction.py",
        "count = at.insert(arith.SelectOp(inside, some, none)).results[0]",
        "count = at.insert(arith.SelectOp(inside, some, some)).results[0]",
        (f"{EMULATED}::test_every_matrix_blocking_is_right",),
    ),
    Mutant(
        "S9m",
        "of equal digits a lane does not count those before it in its warp",
        "irees/transforms/codegen/gpu/_block_radix.py",
        "mine = _counted(_both(arith.AndIOp, same, lane.earlier, b), self.kind, b)",
        "mine = _counted(_both(arith.AndIOp, same, _number(0, i32, b), b), self.kind, b)",
        (f"{SELECTION}::test_static_rows",),
    ),
    Mutant(
        "S9n",
        "a warp's elements do not follow those of earlier warps",
        "irees/transforms/codegen/gpu/_block_radix.py",
        "store(total, counts, [i, digit], at)",
        "store(_number(0, self.kind, at), counts, [i, digit], at)",
        (f"{SELECTION}::test_static_rows",),
    ),
    Mutant(
        "S9o",
        "the last wanted element is looked for one digit too far",
        "irees/transforms/codegen/gpu/_block_radix.py",
        'enough = c.insert(arith.CmpiOp(left, after, "sle")).results[0]',
        'enough = c.insert(arith.CmpiOp(left, after, "slt")).results[0]',
        (f"{SELECTION}::test_static_rows",),
    ),
    Mutant(
        "S9p",
        "a digit that all elements share is taken for one that none has",
        "irees/transforms/codegen/gpu/_block_radix.py",
        'moves = b.insert(arith.CmpiOp(first, _number(0, tallies.kind, b), "ne")).results[0]',
        'moves = b.insert(arith.CmpiOp(first, _number(0, tallies.kind, b), "eq")).results[0]',
        (f"{SELECTION}::test_rows_that_are_alike",),
    ),
    Mutant(
        "S9q",
        "digits are taken where a product says how many threads there are",
        "irees/transforms/codegen/gpu/_radix_rows.py",
        "    if reason is not None or has_its_threads(loop):\n",
        "    if reason is not None:\n",
        ("filecheck/transforms/codegen/gpu/gpu_lower_linalg_ext.mlir",),
    ),
    Mutant(
        "S9r",
        "the counter of a tile is not set back",
        "irees/transforms/codegen/gpu/_shares.py",
        'atomic_rmw("assign", _number(0, c), self.counters',
        'atomic_rmw("assign", _number(1, c), self.counters',
        ("tests/backends/cuda/test_stream_k.py::test_what_was_there_is_added_once",),
    ),
    Mutant(
        "S9s",
        "who comes last begins with its own part of a sum",
        "irees/transforms/codegen/gpu/_shares.py",
        "        for number, total in enumerate(body.arguments):\n",
        "        place = b.add(first, b.rem(b.add(self.workgroup, place), b.sub(last, first)))\n"
        "        for number, total in enumerate(body.arguments):\n",
        ("tests/backends/cuda/test_stream_k.py::test_every_call_gives_the_same_bits",),
    ),
    Mutant(
        "S9t",
        "a workgroup says that its part of a sum is there before others can see it",
        "irees/transforms/codegen/gpu/_shares.py",
        "        at.insert(MemoryBarrierOp())\n        at.insert(BarrierOp())\n",
        "        at.insert(BarrierOp())\n",
        ("tests/backends/cuda/test_sanitizers.py::test_no_report[shares-thread]",),
    ),
    Mutant(
        "Sk1",
        "a workgroup begins at the first step of each tile that it shares",
        "irees/transforms/codegen/gpu/_contraction.py",
        "        return at.mul(self.share.first, depth), last",
        "        return 0, last",
        ("tests/backends/cuda/test_stream_k.py::test_what_was_there_is_added_once",),
    ),
    Mutant(
        "Sk2",
        "boxes of a second tile are numbered from its first again",
        "irees/transforms/codegen/gpu/_bulk_contraction.py",
        "at.sub(share.done, share.first)",
        "at.sub(0, share.first)",
        ("tests/backends/cuda/test_stream_k.py::test_products_of_warpgroups[True]",),
    ),
    Mutant(
        "S9u",
        "only the first place of a scatter is done",
        "irees/transforms/codegen/gpu/_scatter_rows.py",
        "starts = b.insert(arith.OrIOp(first, other)).results[0]",
        "starts = b.insert(arith.OrIOp(first, first)).results[0]",
        (f"{SELECTION}::test_scatters_of_elements_that_meet",),
    ),
    Mutant(
        "S9va",
        "the first update for a place is left out",
        "irees/transforms/codegen/gpu/_scatter_rows.py",
        "while_loop(b, [i, old], goes_on)",
        "while_loop(b, [b.value(b.add(i, 1)), old], goes_on)",
        (f"{SCATTERS}::test_many_updates",),
    ),
    Mutant(
        "S9vb",
        "places whose number is known late have a digit less",
        "irees/transforms/codegen/gpu/_scatter_rows.py",
        "return at.ceildiv(at.sub(64, zeros), DIGIT)",
        "return at.ceildiv(at.sub(56, zeros), DIGIT)",
        (f"{SCATTERS}::test_many_updates",),
    ),
    Mutant(
        "S9vc",
        "updates that meet are for workgroups of their own",
        "irees/transforms/codegen/gpu/_wide_scatter.py",
        "    if op.unique_indices.value.data:\n",
        "    if True:\n",
        (f"{SCATTERS}::test_how_many_workgroups_there_are",),
    ),
    Mutant(
        "S9v",
        "the last part of a row is not counted",
        "irees/transforms/codegen/gpu/_wide_sort.py",
        "tallies.scan(b, give, counts, parts.count)",
        "tallies.scan(b, give, counts, b.sub(parts.count, 1))",
        (f"{SELECTION}::test_one_row_for_all_workgroups",),
    ),
    Mutant(
        "S9i",
        "products of warpgroups read copies that are not fenced",
        "irees/transforms/codegen/gpu/_warpgroup_contraction.py",
        "        at.insert(FenceProxyOp())\n",
        "",
        (f"{WARPGROUPS}::test_every_block_is_right",),
    ),
    Mutant(
        "S9j",
        "a part is copied to where a product is at work",
        "irees/transforms/codegen/gpu/_warpgroup_contraction.py",
        "ahead, depth = self.stages - 2, self.blocking.depth",
        "ahead, depth = self.stages - 1, self.blocking.depth",
        (f"{WARPGROUPS}::test_every_block_is_right",),
    ),
    Mutant(
        "S9f",
        "boxes are swizzled as rows of 128 bytes are, whatever they have",
        "irees/backends/cuda/print_boxes.py",
        'f"{swizzled_bytes(kind)}, {lists}}};"',
        'f"128, {lists}}};"',
        (f"{WARPGROUPS}::test_every_block_is_right",),
    ),
    Mutant(
        "S9l",
        "of an operand that is copied in several boxes a barrier counts one",
        "irees/transforms/codegen/gpu/_bulk_contraction.py",
        "            box.copies * kind.bytes  # type",
        "            kind.bytes  # type",
        (f"{WARPGROUPS}::test_every_block_is_right",),
    ),
    Mutant(
        "S9w",
        "the phases of barriers begin again with each block of a workgroup",
        "irees/transforms/codegen/gpu/_bulk_contraction.py",
        "return BoxRing(self, ivs, (row, column), at.mul(number, parts), parts)",
        "return BoxRing(self, ivs, (row, column), 0, parts)",
        (f"{WARPGROUPS}::test_a_workgroup_that_does_several_blocks",),
    ),
    Mutant(
        "S9x",
        "of a slice of the reduction what follows it is copied too",
        "irees/transforms/codegen/gpu/_boxes.py",
        "        if self.sizes[loop] % steps == 0:\n            return True\n",
        "        return True\n",
        ("filecheck/transforms/codegen/gpu/gpu_use_bulk_copies.mlir",),
    ),
    Mutant(
        "S9k",
        "operands of tf32 are cut off, not rounded",
        "irees/backends/cuda/irees_cuda.h",
        "irees_bitcast<float>((bits + 0x1000) & 0xffffe000)",
        "irees_bitcast<float>(bits & 0xffffe000)",
        ("tests/backends/cuda/test_tf32.py::test_operands_are_rounded_and_not_cut_off",),
    ),
    Mutant(
        "S9y",
        "of two sorted runs those that face each other are compared, not those crosswise",
        "irees/transforms/codegen/gpu/_block_sort.py",
        "c.sub(c.add(apart, width - 1), inside)",
        "c.add(apart, inside)",
        (f"{EMULATED}::test_topk_of_a_workgroup",),
    ),
    Mutant(
        "S9z",
        "an attention in registers sees keys past the last",
        "irees/transforms/codegen/gpu/_register_attention.py",
        "        if self.keys % self.columns == 0:\n            return score",
        "        return score",
        (f"{EMULATED}::test_attention_without_scores_in_memory",),
    ),
    Mutant(
        "S9h",
        "of two equal points of a row the one that a lane met last stays",
        "irees/transforms/codegen/gpu/_folds.py",
        'earlier = at.insert(arith.CmpiOp(b[-1], a[-1], "slt")).results[0]',
        'earlier = at.insert(arith.CmpiOp(b[-1], a[-1], "sgt")).results[0]',
        (f"{EMULATED}::test_selections",),
    ),
    Mutant(
        "S9e",
        "updates that meet are dealt out to threads",
        "irees/transforms/codegen/gpu/_accumulating_rows.py",
        "    _spread(op.updates, list(range(batch, rank)), at, point)\n",
        "    _spread(op.updates, list(range(rank)), at, lambda ivs, b: scatter_point(op, ivs, b))\n",
        ("filecheck/transforms/codegen/gpu/gpu_lower_linalg_ext_issue_5.mlir",),
    ),
    Mutant(
        "S10a",
        "what lies behind the middle of a padding is not filled",
        "irees/transforms/codegen/common/_frames.py",
        "for start, length in ((0, offset), (offset + size, whole - offset - size)):",
        "for start, length in ((0, offset),):",
        PADDING_TESTS,
    ),
    Mutant(
        "S10b",
        "the sides of a frame begin at the first row",
        "irees/transforms/codegen/common/_frames.py",
        "yield [*offsets[:dim], start,",
        "yield [*([0] * dim), start,",
        PADDING_TESTS,
    ),
    Mutant(
        "S11a",
        "a sum is written over an init that it also reads",
        "irees/transforms/codegen/common/_bufferization.py",
        "return is_parallel(op) and maps(op)[use.index] == maps(op)[written]",
        "return True",
        ("filecheck/transforms/codegen/common/bufferize_dispatch.mlir",),
    ),
    Mutant(
        "S11b",
        "a gather in any order is a reshape",
        "irees/transforms/global_opt/fold_constant_gathers.py",
        "if not np.array_equal(found.reshape(-1), np.arange(elements)):",
        "if not np.array_equal(np.sort(found.reshape(-1)), np.arange(elements)):",
        ("filecheck/transforms/global_opt/fold_constant_gathers.mlir", SIBLING_TESTS),
    ),
    Mutant(
        "S11c",
        "groups merge though one waits for the other through a third",
        "irees/transforms/dispatch_creation/_tile_groups.py",
        "            self._needed(source) & both\n",
        "            self._needed(source) & both & 0\n",
        ("tests/transforms/dispatch_creation/test_form_dispatch_regions.py",),
    ),
    Mutant(
        "S11d",
        "a sum around the number 0 is taken for one around a point",
        "irees/transforms/global_opt/merge_variance_passes.py",
        "off = s.op(arith.SubfOp, s.cast(v[0], f64), s.cast(v[1], f64))",
        "off = s.cast(v[0], f64)",
        MERGED_TESTS,
    ),
    Mutant(
        "S11e",
        "any number is taken for how many points there are",
        "irees/transforms/global_opt/merge_variance_passes.py",
        "prod(reduced) == found.points <= MOST_POINTS",
        "prod(reduced) <= MOST_POINTS",
        ("filecheck/transforms/global_opt/merge_variance_passes.mlir",),
    ),
    Mutant(
        "S11f",
        "reductions are joined though one reads what the other makes, by way of a third op",
        "irees/transforms/global_opt/fuse_sibling_reductions.py",
        "            needed.append(between)\n",
        "",
        MERGED_TESTS,
    ),
    Mutant(
        "S12a",
        "what a loop leaves behind besides its arguments is lost",
        "irees/transforms/input/lift_cf_to_scf.py",
        "[v if here in exists[v] else poison(v.type, at, branch) for v in escaping]",
        "[poison(v.type, at, branch) for v in escaping]",
        CONTROL_FLOW_TESTS,
    ),
    Mutant(
        "S12b",
        "ways that nothing comes along count for what dominates",
        "irees/analysis/dominance.py",
        "todo = [start] if start is not avoiding else []",
        "todo = [start]",
        CONTROL_FLOW_TESTS,
    ),
    Mutant(
        "S12c",
        "an upper half is corrected for one sign only",
        "irees/transforms/global_opt/expand_arith.py",
        "for x, y in ((a, b), (b, a)):",
        "for x, y in ((a, b),):",
        ("tests/properties/test_expanded_arith.py",),
    ),
    Mutant(
        "S13a",
        "a view of the old value is forgotten when its memory is taken",
        "irees/transforms/dispatch_creation/tie_dispatch_operands.py",
        "or is_read_later(op.results[0], dispatch):",
        "or False:",
        ("filecheck/transforms/dispatch_creation/tie_dispatch_operands.mlir",),
    ),
    Mutant(
        "S13b",
        "an argument of the caller is written to unasked",
        "irees/transforms/dispatch_creation/tie_dispatch_operands.py",
        "return any(terminator.operands[i] is result for i in wanted)",
        "return True",
        ("filecheck/transforms/dispatch_creation/tie_dispatch_operands.mlir",),
    ),
    Mutant(
        "S13c",
        "of two arguments that are exchanged both get one value",
        "irees/transforms/stream/_results.py",
        "buffer = copied(buffer, builder)",
        "pass",
        ("tests/test_updates.py",),
    ),
    Mutant(
        "S13d",
        "an old value that is read after the update is overwritten",
        "irees/transforms/dispatch_creation/tie_dispatch_operands.py",
        "elif op.parent_block() is not block or not op.is_before_in_block(dispatch):",
        "elif op.parent_block() is not block:",
        ("tests/test_updates.py",),
    ),
    Mutant(
        "S13e",
        "arguments may share memory with one that is written to",
        "irees/runtime/updates.py",
        "if other != number and spans[number] and span and _overlap(spans[number], span):",
        "if False:",
        ("tests/test_updates.py",),
    ),
    Mutant(
        "S14a",
        "as_strided of a contiguous copy reads the storage of the original",
        "irees/frontends/torch/lowerings/views.py",
        "if source.untyped_storage()._cdata == given.untyped_storage()._cdata:",
        "if True:",
        ("tests/frontends/test_torch_operators.py",),
    ),
    Mutant(
        "S14b",
        "heaviside of NaN is 1",
        "irees/frontends/torch/lowerings/activations.py",
        "(v > 0).where(1, v._other(0))",
        "(v < 0).where(0, v._other(1))",
        ("tests/frontends/test_torch_operators.py",),
    ),
    Mutant(
        "S14c",
        "a gradient of integers keeps its dtype in threshold_backward",
        "irees/frontends/torch/rewriting.py",
        "grad_output.to(kind), input, threshold",
        "grad_output, input, threshold",
        ("tests/frontends/test_torch_rewriting.py",),
    ),
    Mutant(
        "S14d",
        "quantize_per_tensor rounds before it adds the zero point",
        "irees/frontends/torch/quantized.py",
        "torch.round(x * factor + zero)",
        "torch.round(x * factor) + zero",
        ("tests/frontends/test_torch_quantized.py",),
    ),
    Mutant(
        "S30a",
        "an exclusive scan returns the sum of all elements in its accumulator",
        "irees/interpreters/ext_sorting.py",
        "elements[number if inclusive else number - 1]",
        "elements[number]",
        ("tests/transforms/codegen/common/test_scan.py",),
    ),
    Mutant(
        "S30b",
        "the region of an attention computes with scores, not with exponents of two",
        "irees/dialects/iree_linalg_ext/attention.py",
        "return RegionUnits(factor=math.log2(math.e))",
        "return RegionUnits()",
        ("tests/transforms/global_opt/test_attention_regions.py",),
    ),
    Mutant(
        "S30c",
        "uitofp of an i4 extends the sign",
        "irees/transforms/global_opt/_narrow_ints.py",
        "value = op.operands[0] if source is None else source.unsigned(op.operands[0], s)",
        "value = op.operands[0]",
        ("tests/transforms/global_opt/test_narrow_integers.py",),
    ),
    Mutant(
        "S30d",
        "an f64 is rounded to f32 on its way to f8",
        "irees/transforms/utils/narrow_floats.py",
        "return s.select(inexact, b.or_(bits, 1), bits)",
        "return b.of(near)",
        ("tests/transforms/global_opt/test_narrow_floats.py",),
    ),
    Mutant(
        "S30e",
        "a multiple is taken off by a multiply-add",
        "irees/backends/common/emit_ops.py",
        "            if is_multiple(op):",
        "            if False:",
        ("tests/backends/common/test_remainders.py",),
    ),
    Mutant(
        "S30f",
        "a region may use what follows its op",
        "irees/frontends/mlir/verify.py",
        "if owner is around and here is not None and here not in self.seen:",
        "if False:",
        ("tests/frontends/mlir/test_verify.py",),
    ),
    Mutant(
        "S30g",
        "linalg ops on memrefs are erased",
        "irees/transforms/input/verify_input_legality.py",
        "for inner, text, hint in faults[:1]:",
        "for inner, text, hint in faults[:0]:",
        ("tests/transforms/input/test_verify_input_legality.py",),
    ),
    Mutant(
        "S30h",
        "the view of a tile begins between two blocks of rows",
        "irees/transforms/codegen/common/tile_and_distribute.py",
        "return tile and (even_tile(tile, indices) or 0)",
        "return tile",
        ("tests/transforms/codegen/common/test_divided_indices.py",),
    ),
    Mutant(
        "S30i",
        "hexadecimal floats are numbers until an op of arith was met",
        "irees/dialects/__init__.py",
        '    import_module("irees.dialects.upstream.builtin").patch()',
        "    return",
        ("tests/frontends/mlir/test_literals.py",),
    ),
    Mutant(
        "L30b",
        "aliases that double are read",
        "irees/frontends/mlir/parser.py",
        'limits.check("alias_tokens", size,',
        'limits.check("alias_tokens", 1,',
        ("tests/test_limits.py",),
    ),
    Mutant(
        "L30c",
        "copies of functions cost nothing",
        "irees/transforms/input/inline_calls.py",
        'limits.spend("inlining", self._sizes[function], op=call)',
        'limits.spend("inlining", 0, op=call)',
        ("tests/test_limits.py::test_calls_that_double_are_refused",),
    ),
    Mutant(
        "L30d",
        "a consumer takes its producer twice, whatever its size",
        "irees/transforms/global_opt/fuse_elementwise_ops.py",
        "if len(uses) > 1 and is_longer_than(producer, MAX_REPEATED_OPS):",
        "if False:",
        ("tests/test_long_programs.py::test_what_reads_a_tensor_twice_does_not_double",),
    ),
    Mutant(
        "L30e",
        "an element outside of a formula is computed there",
        "irees/transforms/global_opt/compute_extracted_elements.py",
        "builder.value(builder.minimum(builder.maximum(index, 0), size - 1))",
        "builder.value(index)",
        ("tests/test_limits.py::test_a_large_iota_stays_a_formula",),
    ),
    Mutant(
        "L30f",
        "a program that a listener could change is stored",
        "irees/compiler.py",
        "if any(listener is not None for listener in listeners.values()):",
        "if False:",
        ("tests/test_program_cache.py",),
    ),
    Mutant(
        "L30g",
        "a file is written over whatever has its name",
        "irees/runtime/files.py",
        "if not stat.S_ISREG(found.st_mode):",
        "if False:",
        ("tests/runtime/test_files.py",),
    ),
    Mutant(
        "L30h",
        "storages of tensors are not looked at",
        "irees/runtime/torch_tensors.py",
        "return last <= tensor.untyped_storage().nbytes()",
        "return True",
        ("tests/runtime/test_torch_arguments.py",),
    ),
    Mutant(
        "L30i",
        "the reference target interprets its dispatches when they are traced",
        "irees/build.py",
        "return ReferenceProgram(module, *call, traced=dispatches, tracer=tracer)",
        "return ReferenceProgram(dispatches, *call, traced=dispatches, tracer=tracer)",
        ("tests/test_trace_dispatch_tensors.py",),
    ),
    Mutant(
        "S30j",
        "a global is read as another type than it has",
        "irees/dialects/rules/_symbols.py",
        "    if own != kind:",
        "    if False:",
        ("tests/frontends/mlir/test_rules.py",),
    ),
    Mutant(
        "F0a",
        "a remainder in an affine map has the sign of what is divided",
        "irees/transforms/input/_affine.py",
        "division = arith.CeilDivSIOp if ceil else arith.FloorDivSIOp",
        "division = arith.CeilDivSIOp if ceil else arith.DivSIOp",
        ("tests/test_host_programs.py::test_a_remainder_in_a_map_is_not_negative",),
    ),
    Mutant(
        "F0b",
        "a block without a terminator is let in",
        "irees/frontends/mlir/verify.py",
        "if any(block.is_empty for block in region.blocks):",
        "if False:",
        ("tests/frontends/mlir/test_verify.py",),
    ),
    Mutant(
        "F0c",
        "an op that a conversion makes is not verified",
        "irees/verification.py",
        "        new.verify()\n",
        "        pass\n",
        (
            "tests/transforms/input/test_flow_tensors.py",
            "tests/transforms/global_opt/test_decompositions.py",
        ),
    ),
    Mutant(
        "F0d",
        "the index of a dim is not checked",
        "irees/dialects/shape_relations.py",
        '    "tensor.dim": dim,\n',
        "",
        ("tests/test_host_programs.py::test_a_dim_that_is_not_there_traps",),
    ),
    Mutant(
        "F0e",
        "a type may have more elements than an index counts",
        "irees/frontends/mlir/admission.py",
        "MAX_ELEMENTS = 1 << 59",
        "MAX_ELEMENTS = 1 << 590",
        ("tests/frontends/mlir/test_verify.py",),
    ),
    *ACCESS_MUTANTS,
)
