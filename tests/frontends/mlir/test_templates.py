"""An op whose text was parsed before is a clone, and the module is that of a parser without it."""

from __future__ import annotations

import io

import pytest
from xdsl.printer import Printer

from irees.errors import IreesError
from irees.frontends.mlir import import_mlir
from irees.frontends.mlir.templates import Templates

T = "tensor<4xf32>"


def generic(out: str, x: str, init: str, body: str = "math.exp", names: str = "in out y") -> str:
    a, b, y = names.split()
    return f"""\
    %{out} = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]}} ins(%{x} : {T}) outs(%{init} : {T}) {{
    ^bb0(%{a}: f32, %{b}: f32):
      %{y} = {body} %{a} : f32
      linalg.yield %{y} : f32
    }} -> {T}
"""


def function(*lines: str, result: str = "r") -> str:
    body = "".join(lines)
    return f"""
  func.func @main(%x: {T}, %n: index, %w: tensor<?xf32>) -> {T} {{
    %e = tensor.empty() : {T}
{body}    return %{result} : {T}
  }}"""


def outcome(text: str) -> str:
    """The module with locations and names of values, or the error."""
    try:
        module = import_mlir(text, name="t.mlir")
    except IreesError as error:
        return str(error)
    out = io.StringIO()
    Printer(out, print_debuginfo=True).print_op(module)
    return out.getvalue()


CASES = {
    "equal": function(generic("a", "x", "e"), generic("r", "a", "e")),
    "same_operand_twice": function(generic("a", "x", "e"), generic("r", "a", "a")),
    "other_body": function(generic("a", "x", "e"), generic("r", "a", "e", "math.tanh")),
    "other_names": function(generic("a", "x", "e"), generic("r", "a", "e", names="p q z_1")),
    "swapped_names": function(generic("a", "x", "e"), generic("r", "a", "e", names="out in y")),
    "same_names": function(generic("a", "x", "e"), generic("r", "a", "e", names="in in y")),
    "captured": function(generic("a", "x", "e"), generic("r", "a", "e", names="in out x")),
    "one_name_for_two": function(
        generic("a", "x", "e", "arith.addf %in,"), generic("r", "a", "e", "arith.addf %out,")
    ),
    "numbers": function(generic("0", "x", "e", names="1 2 3"), generic("r", "0", "e")),
    "undefined": function(generic("a", "x", "e"), generic("r", "b", "e")),
    "later": function(generic("a", "x", "e"), generic("b", "r", "e"), generic("r", "a", "e")),
    "defined_twice": function(generic("r", "x", "e"), generic("r", "x", "e")),
    "other_type": function(generic("a", "x", "e"), generic("r", "w", "e")),
    "inner_value": function(generic("a", "x", "e"), generic("r", "in", "e")),
    "attribute_behind": function(
        "    %a = tensor.empty() : tensor<4xf32>\n",
        "    %r = tensor.empty() : tensor<4xf32>\n        loc(unknown)\n",
    ),
    "more_behind": function(
        f"    %a = tensor.cast %x : {T} to tensor<?xf32>\n",
        f"    %b = tensor.cast %x : {T} to tensor<?xf32>, 3\n",
        result="x",
    ),
    "comments": function(
        f"    %a = tensor.dim %x, %n : {T} // %b\n",
        f"    %c = tensor.dim %x, %n : {T} // %d\n",
        result="x",
    ),
    "strings": function(
        f'    %a = tensor.cast %x {{s = "%b_1"}} : {T} to {T}\n',
        f'    %r = tensor.cast %x {{s = "%b_2"}} : {T} to {T}\n',
    ),
    "locations": function(
        f'    %a = tensor.empty() : {T} loc("one")\n',
        f'    %r = tensor.empty() : {T} loc("two")\n',
    ),
}
CASES["two_functions"] = CASES["equal"] + CASES["equal"].replace("@main", "@other")


@pytest.mark.parametrize("name", CASES)
def test_templates_change_nothing(name, monkeypatch):
    with_templates = outcome(CASES[name])
    monkeypatch.setattr(Templates, "find", lambda *_: None)
    monkeypatch.setattr(Templates, "add", lambda *_: None)
    assert with_templates == outcome(CASES[name])


@pytest.mark.parametrize("name", ["equal", "same_operand_twice", "two_functions"])
def test_equal_texts_are_parsed_once(name, monkeypatch):
    found: list[object] = []
    find = Templates.find

    def counted(self, *arguments):
        found.append(find(self, *arguments))
        return found[-1]

    monkeypatch.setattr(Templates, "find", counted)
    import_mlir(CASES[name])
    assert any(each is not None for each in found)
