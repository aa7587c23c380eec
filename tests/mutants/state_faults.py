"""The faults of programs of PyTorch that keep state, and of what users do with a compiled one."""

from __future__ import annotations

from mutant import Mutant

TORCH = "irees/frontends/torch"
STATE_TESTS = ("tests/frontends/test_torch_module_state.py",)

MUTANTS = (
    Mutant(
        "A500",
        "hooks that a call registers are not looked at",
        f"{TORCH}/python_state.py",
        'self.leaves[f"{prefix}.{name}"] = tuple(table)',
        "pass",
        STATE_TESTS,
    ),
    Mutant(
        "A501",
        "a hook that a call registers stays in the user's module",
        f"{TORCH}/module_state.py",
        "table.update({**old, **others})",
        "table.update({**now[name], **others})",
        STATE_TESTS,
    ),
    Mutant(
        "A502",
        "parameters of a trace lack the attributes that the user has set",
        f"{TORCH}/module_state.py",
        "vars(tensor).update({**new, **vars(tensor)})",
        "pass",
        STATE_TESTS,
    ),
    Mutant(
        "A503",
        "attributes that a trace's tensors have of their own are the user's",
        f"{TORCH}/module_state.py",
        "for name, value in vars(tensor).items() if name not in own}",
        "for name, value in vars(tensor).items()}",
        STATE_TESTS,
    ),
    Mutant(
        "A504",
        "a function that replaces another is not looked at",
        f"{TORCH}/python_state.py",
        "            self.leaves[path] = function.__code__\n",
        "",
        STATE_TESTS,
    ),
    Mutant(
        "A505",
        "requires_grad of parameters is not looked at",
        f"{TORCH}/python_state.py",
        '                ("requires_grad", leaf.requires_grad),\n',
        "",
        STATE_TESTS,
    ),
    Mutant(
        "A506",
        "attributes that a second trace has put into a module stay there",
        f"{TORCH}/effects.py",
        "        with objects_kept(self.root):\n            self.after",
        "        if True:\n            self.after",
        STATE_TESTS,
    ),
    Mutant(
        "A507",
        "regions that turn gradients on are not functionalized",
        f"{TORCH}/functionalizing.py",
        "    exported = without_gradients(with_casts_shown(exported))\n",
        "    exported = with_casts_shown(exported)\n",
        (
            "tests/frontends/test_torch_functionalizing.py"
            "::test_a_region_with_gradients_and_a_write",
        ),
    ),
    Mutant(
        "A508",
        "a function that caches its results keeps tensors of a trace",
        f"{TORCH}/python_state.py",
        "                cached.cache_clear()",
        "                pass",
        STATE_TESTS,
    ),
    Mutant(
        "A509",
        "the function below a cache is not looked at",
        f"{TORCH}/python_state.py",
        "    if isinstance(value, _CACHED):\n        return _function_of(value.__wrapped__)\n",
        "",
        STATE_TESTS,
    ),
    Mutant(
        "A510",
        "a tensor of a trace that is no leaf has lost requires_grad",
        f"{TORCH}/python_state.py",
        "leaf = tensor if tensor.is_leaf else real",
        "leaf = tensor",
        STATE_TESTS,
    ),
    Mutant(
        "A511",
        "a tensor that is written to is counted twice where it needs gradients",
        f"{TORCH}/derivatives.py",
        "                value.detach_()",
        "                pass",
        ("tests/frontends/test_torch_derivatives.py",),
    ),
    Mutant(
        "A512",
        "a target that is no class is read past the end of a row",
        f"{TORCH}/adaptive_softmax.py",
        "(target < layer.n_classes)).all(),",
        "(target <= layer.n_classes)).all(),",
        ("tests/frontends/test_torch_adaptive_softmax.py",),
    ),
    Mutant(
        "A513",
        "the loss of an adaptive softmax keeps its sign",
        f"{TORCH}/adaptive_softmax.py",
        "(-chosen).mean()",
        "chosen.mean()",
        ("tests/frontends/test_torch_adaptive_softmax.py",),
    ),
    Mutant(
        "A514",
        "irees.explain does not say that a whole graph runs in PyTorch",
        "irees/dynamo/explaining.py",
        "            found.left.append([_node_left(node, why) for node in nodes])",
        "            found.left.append([])",
        (
            "tests/frontends/test_torch_compile.py"
            "::test_explain_names_a_graph_that_pytorch_cannot_make_functional",
        ),
    ),
    Mutant(
        "A515",
        "hooks of all modules run for those of a trace, too",
        f"{TORCH}/module_state.py",
        "return None if is_tracer or kind",
        "return None if kind",
        STATE_TESTS,
    ),
    Mutant(
        "A516",
        "hooks of all modules run for the module that holds a function",
        f"{TORCH}/module_state.py",
        'return None if is_tracer or kind.startswith("irees.") else',
        "return None if is_tracer else",
        STATE_TESTS,
    ),
)
