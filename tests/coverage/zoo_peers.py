"""What other compilers make of a model: Inductor, and IREE by torch-mlir's importer."""

from __future__ import annotations

import time
from typing import Any


def by_dynamo(backend: str, model: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, float]:
    """The second result of `torch.compile`, and the seconds of the first call, which compiles."""
    import torch

    torch._dynamo.reset()
    run = torch.compile(model, backend=backend)
    # Dynamo leaves recurrent layers to PyTorch unless it is told to take them.
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        begin = time.perf_counter()
        run(*args, **kwargs)
        seconds = time.perf_counter() - begin
        return run(*args, **kwargs), seconds


def by_iree(model: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, float]:
    """
    The result of IREE, and the seconds it takes to compile; needs its wheels and torch-mlir's.

    The export is the one of `irees.compile`, which knows transformers' caches: what fails is
    torch-mlir's importer or IREE, not `torch.export`.
    """
    import iree.compiler as compiler
    import iree.runtime as runtime
    import torch
    from torch.utils._pytree import tree_leaves, tree_unflatten
    from torch_mlir import fx

    from irees.frontends.torch.exporting import export

    begin = time.perf_counter()
    with torch.no_grad():
        exported = export(model, args, kwargs)
        text = str(fx.export_and_import(exported, output_type="raw", func_name="main"))
    blob = compiler.compile_str(
        text,
        input_type="torch",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    seconds = time.perf_counter() - begin
    config = runtime.Config("local-sync")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, blob))
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    found = context.modules.module["main"](*(x.detach().contiguous().numpy() for x in tensors))
    flat = [found] if not isinstance(found, tuple | list) else found
    got = [torch.from_numpy(x.to_host().copy()) for x in flat]
    return tree_unflatten(got, exported.call_spec.out_spec), seconds
