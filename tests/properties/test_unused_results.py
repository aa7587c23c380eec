"""Operands and results that nobody needs go, and what is left gives what it gave."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from xdsl.transforms.canonicalize import CanonicalizePass

from irees.testing import profiles
from irees.testing.oracles import passes_agree

FACTOR = profiles.load()
KIND = "tensor<2x5xi32>"
DTYPES = {"i32": np.int32, "i64": np.int64, "i8": np.int8}


def returned(names):
    return f"  return {', '.join(names)} : {', '.join([KIND] * len(names))}\n}}\n"


def signature(arguments, results):
    inside = ", ".join(f"{a}: {KIND}" for a in arguments)
    return f"func.func @main({inside}) -> ({', '.join([KIND] * results)}) {{\n"


def some(data, names):
    """Some of the names, perhaps none, in their order."""
    return [n for n in names if data.draw(st.booleans())]


@settings(max_examples=100 * FACTOR)
@given(st.data())
def test_sorts_keep_what_is_used_and_what_is_compared(data):
    count = data.draw(st.integers(1, 4))
    elements = [data.draw(st.sampled_from(list(DTYPES))) for _ in range(count)]
    kinds = [f"tensor<2x5x{e}>" for e in elements]
    own_inputs, predicate = data.draw(st.booleans()), data.draw(st.sampled_from(["sge", "slt"]))
    compared = data.draw(st.integers(0, count - 1))
    second = data.draw(st.none() | st.integers(0, count - 1))
    dead = data.draw(st.none() | st.integers(0, count - 1))
    arguments = [f"%a{i}" for i in range(count)]
    outs = [f"%o{i}" for i in range(count)] if own_inputs else arguments

    def pair(operand):
        return f"%l{operand}, %r{operand} : {elements[operand]}"

    body = [f"    %p = arith.cmpi {predicate}, {pair(compared)}"]
    if dead is not None:
        body.append(f"    %dead = arith.addi {pair(dead)}")
    if second is None:
        body.append("    iree_linalg_ext.yield %p : i1")
    else:
        body.append(f"    %q = arith.cmpi sle, {pair(second)}")
        body.append(f"    %e = arith.cmpi eq, {pair(compared)}")
        body.append("    %s = arith.select %e, %q, %p : i1")
        body.append("    iree_linalg_ext.yield %s : i1")
    used = some(data, range(count))
    # What was sorted is read again afterwards, as it was.
    names = [*(f"%s#{i}" if count > 1 else "%s" for i in used), "%a0"]
    types = ", ".join(kinds)
    results = ", ".join([*(kinds[i] for i in used), kinds[0]])
    pairs = ", ".join(f"%l{i}: {e}, %r{i}: {e}" for i, e in enumerate(elements))
    source = f"ins({', '.join(arguments)} : {types}) " if own_inputs else ""
    signature = list(zip([*arguments, *(outs if own_inputs else [])], kinds * 2, strict=False))
    text = (
        f"func.func @main({', '.join(f'{a}: {k}' for a, k in signature)}) -> ({results}) {{\n"
        + f"  %s{f':{count}' if count > 1 else ''} = iree_linalg_ext.sort dimension(1) "
        + f"{source}outs({', '.join(outs)} : {types}) {{\n  ^bb0({pairs}):\n"
        + "\n".join(body)
        + f"\n  }} -> {types}\n"
        + f"  return {', '.join(names)} : {results}\n}}\n"
    )
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    inputs = [random.integers(0, 4, (2, 5)).astype(DTYPES[k[11:-1]]) for _, k in signature]
    module, wrong = passes_agree(text, [CanonicalizePass()], *inputs)
    assert wrong == []
    needed = set(used) | {compared} | ({second} - {None})
    sorts = [o for o in module.walk() if o.name == "iree_linalg_ext.sort"]
    assert [len(s.results) for s in sorts] == ([len(needed)] if used else [])
    event(f"{count - len(needed)} of {count} dropped")


@settings(max_examples=100 * FACTOR)
@given(st.data())
def test_generics_keep_what_is_used(data):
    inputs, outputs = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    own = [f"%i{k}" for k in range(inputs)]
    repeated = data.draw(st.lists(st.sampled_from(own), max_size=1))
    ins = [*own, *repeated]
    outs = [f"%o{k}" for k in range(outputs)]
    if outputs > 1 and data.draw(st.booleans()):
        outs[-1] = outs[0]
    scalars = [f"%x{k}" for k in range(len(ins))]
    states = [f"%y{k}" for k in range(outputs)]
    reduced = data.draw(st.booleans())
    lines, yields = [], []
    values = list(scalars)
    for k in range(outputs):
        other = data.draw(st.sampled_from([*values, *states, *([states[k]] * 3)]))
        op = data.draw(st.sampled_from(["addi", "maxsi", "xori"]))
        lines.append(f"    %v{k} = arith.{op} {data.draw(st.sampled_from(values))}, {other} : i32")
        values.append(f"%v{k}")
        yields.append(data.draw(st.sampled_from([f"%v{k}", f"%v{k}", values[0]])))
    used = some(data, range(outputs))
    names = [f"%g#{k}" if outputs > 1 else "%g" for k in used]
    target = "affine_map<(d0, d1, d2) -> (d0, d1)>"
    source = target.replace("(d0, d1)>", "(d0, d2)>") if reduced else target
    kinds = ["parallel", "parallel", "reduction" if reduced else "parallel"]
    if not reduced:
        source = target = "affine_map<(d0, d1) -> (d0, d1)>"
        kinds = kinds[:2]
    maps = ", ".join([*[source] * len(ins), *[target] * outputs])
    iterators = ", ".join(f'"{k}"' for k in kinds)
    arguments = [*own, *dict.fromkeys(outs)]
    many = lambda n: ", ".join([KIND] * n)  # noqa: E731
    blocks = ", ".join(f"{v}: i32" for v in [*scalars, *states])
    text = (
        signature(arguments, len(used) + 1)
        + f"  %g{f':{outputs}' if outputs > 1 else ''} = linalg.generic "
        + f"{{indexing_maps = [{maps}], iterator_types = [{iterators}]}}\n"
        + f"      ins({', '.join(ins)} : {many(len(ins))})"
        + f" outs({', '.join(outs)} : {many(outputs)}) {{\n"
        + f"  ^bb0({blocks}):\n"
        + "\n".join(lines)
        + f"\n    linalg.yield {', '.join(yields)} : {', '.join(['i32'] * outputs)}\n  }} -> "
        + (f"({many(outputs)})" if outputs > 1 else KIND)
        + "\n"
        + returned([*names, outs[0]])
    )
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = [random.integers(-9, 9, (2, 5)).astype(np.int32) for _ in arguments]
    module, wrong = passes_agree(text, [CanonicalizePass()], *arrays)
    assert wrong == []
    generics = [o for o in module.walk() if o.name == "linalg.generic"]
    if not used:
        assert generics == []
        return
    (generic,) = generics
    assert len(generic.inputs) <= len(own)  # pyright: ignore
    event(f"{outputs - len(generic.results)} of {outputs} outputs dropped")
