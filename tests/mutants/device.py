"""Faults of the CUDA runtime, which the tests with a stand-in for CuPy find."""

from __future__ import annotations

from mutant import Mutant

TESTS = "tests/runtime/test_cuda.py"

MUTANTS = (
    Mutant(
        "A88",
        "a program works on CuPy's stream, whatever stream PyTorch is on",
        "irees/runtime/cuda_queue.py",
        "if isinstance(value, torch.Tensor) and value.is_cuda:",
        "if isinstance(value, torch.Tensor) and not value.is_cuda:",
        (f"{TESTS}::test_the_stream_of_torch",),
    ),
    Mutant(
        "A89",
        "each of several first calls loads the program",
        "irees/runtime/cuda.py",
        "        with self._lock:\n            if self._loaded is None:\n                try:\n",
        "        with self._lock:\n            if True:\n                try:\n",
        (f"{TESTS}::test_calls_at_the_same_time",),
    ),
    Mutant(
        "A90",
        "nobody looks at the trap word of a graph",
        "irees/runtime/graphs.py",
        "return device.trapped(device.guarded(work), recorded.trap)",
        "return device.guarded(work)",
        (f"{TESTS}::test_a_call_has_one_trap_word",),
    ),
    Mutant(
        "A91",
        "a call of one kernel is recorded as a graph",
        "irees/runtime/graphs.py",
        "if launches < LEAST_LAUNCHES:",
        "if launches < 0:",
        (f"{TESTS}::test_which_calls_are_recorded",),
    ),
    Mutant(
        "A92",
        "a graph that was recorded on one stream is launched on another, with the same memory",
        "irees/runtime/graphs.py",
        "key = (self.device.stream, *frame",
        "key = (0, *frame",
        (f"{TESTS}::test_the_stream_of_torch",),
    ),
    Mutant(
        "A93",
        "NVRTC is loaded without its builtins, which that of CUDA 13.0 does not find",
        "irees/backends/cuda/toolchain.py",
        "            _load_builtins(Path(candidate))\n",
        "",
        ("tests/backends/cuda/test_toolchain.py::test_builtins_are_loaded_first",),
    ),
    Mutant(
        "A94",
        "counters are filled on a stream that does not wait for who had their memory before",
        "irees/runtime/cuda.py",
        "        self.cupy.cuda.runtime.memsetAsync(pointer, 0, size, self._call.queue.home)\n",
        "        stream = self.cupy.cuda.Stream(non_blocking=True)\n"
        "        self.cupy.cuda.runtime.memsetAsync(pointer, 0, size, stream.ptr)\n"
        "        stream.synchronize()\n",
        (f"{TESTS}::test_counters_are_filled_once",),
    ),
    Mutant(
        "A95",
        "the memory of a graph is taken for the stream on which it is recorded",
        "irees/runtime/graphs.py",
        "            with device.recording(stream.ptr) as kept:\n",
        "            with stream, device.recording(stream.ptr) as kept:\n",
        (f"{TESTS}::test_counters_are_filled_once",),
    ),
    Mutant(
        "A96",
        "arrays of CuPy are read on PyTorch's stream before they are made",
        "irees/runtime/cuda.py",
        "                self._wait(self.stream, current)\n",
        "",
        (f"{TESTS}::test_arrays_of_two_streams",),
    ),
    Mutant(
        "A97",
        "arrays of CuPy may be changed while PyTorch's stream reads them",
        "irees/runtime/cuda.py",
        "                self._wait(call.other, call.queue.stream)\n",
        "                pass\n",
        (f"{TESTS}::test_arrays_of_two_streams",),
    ),
    Mutant(
        "A98",
        "memory that does not suffice behind a trap hides the trap",
        "irees/runtime/cuda.py",
        "if word is None or status == DEVICE_FAULT:",
        "if word is None or status < 0:",
        (f"{TESTS}::test_a_call_has_one_trap_word",),
    ),
    Mutant(
        "A99",
        "pinned memory is copied while the caller writes to it",
        "irees/runtime/cuda.py",
        "if host.torch and value.is_pinned():",
        "if False:",
        (f"{TESTS}::test_pinned_memory_is_the_callers_again_after_a_call",),
    ),
    Mutant(
        "A100",
        "a call that trapped has results, which it and its caller free",
        "irees/backends/common/emit.py",
        'for line in [*trapped, "if (status) goto done;"] if trapped else ():',
        "for line in ():",
        ("filecheck/backends/cuda/traps.mlir",),
    ),
    Mutant(
        "A101",
        "the host goes on with what a kernel that trapped has left",
        "irees/runtime/cuda.py",
        "return status or self.trapped(0, self._call.trap)",
        "return status",
        (f"{TESTS}::test_the_host_reads_nothing_of_a_kernel_that_trapped",),
    ),
    Mutant(
        "A119",
        "a slot of operands is freed while the running product still reads it",
        "irees/transforms/codegen/gpu/gpu_lower_contractions/bulk_contraction.py",
        "        self._arrive(at.sub(part, 1), leads, at)\n",
        "        self._arrive(part, leads, at)\n",
        ("tests/backends/cuda/test_warpgroups.py::test_every_block_is_right",),
    ),
    Mutant(
        "A178",
        "the values of an attention are read as if each key were a row of the other operand",
        "irees/backends/cuda/irees_warpgroup.h",
        "const uint32_t word = (uint32_t)all[lane / 4 * 4 + q], k = i / 4 * 16 + i % 4 / 2 * 8 + 2 * q;",
        "const uint32_t word = (uint32_t)all[lane / 4 * 4 + q], k = i / 4 * 16 + i % 4 / 2 * 4 + 2 * q;",
        ("tests/backends/cuda/test_warpgroup_attention.py::test_attention",),
    ),
    Mutant(
        "A179",
        "the next tile of keys is copied to the slot that products read",
        "irees/transforms/codegen/gpu/gpu_lower_attention/warpgroup_attention.py",
        "self._load_tile(following, b.value(b.rem(b.add(part, 1), STAGES)), b)",
        "self._load_tile(following, b.value(b.rem(part, STAGES)), b)",
        ("tests/backends/cuda/test_warpgroup_attention.py::test_attention",),
    ),
)
