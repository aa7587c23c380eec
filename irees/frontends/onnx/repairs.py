"""
Rewrites the nodes of an ONNX graph that torch-mlir lowers to wrong values or not at all. Part of
the child process of `lowering.py`.

    DepthToSpace (CRD)                     torch-mlir is right only if C = blocksize^3
      =>  Reshape, Transpose, Reshape
    GridSample of zeros around an image    torch-mlir weighs pixels outside of the image
      =>  Pad by one pixel; GridSample at clamped places
    Pad (wrap)                             torch-mlir never ends
      =>  Slice, Concat

A node of which too little is known is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import helper, numpy_helper


class Unrepaired(Exception):
    """A node that torch-mlir does not lower rightly, and that cannot be rewritten."""


def repair(proto: Any) -> None:
    """Rewrites the nodes of a model in place. Raises Unrepaired."""
    _repair(proto.graph, {})


def _repair(graph: Any, outside: dict[str, list[int | None]]) -> None:
    """Rewrites the nodes of a graph, and of the branches and bodies in it."""
    values = [*graph.input, *graph.value_info, *graph.output]
    shapes = {
        v.name: [
            d.dim_value if d.HasField("dim_value") else None for d in v.type.tensor_type.shape.dim
        ]
        for v in values
    }
    shapes = outside | shapes | {weight.name: list(weight.dims) for weight in graph.initializer}
    nodes: list[Any] = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _repair(attribute.g, shapes)
        rewrite = REPAIRS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        nodes += [node] if rewrite is None else rewrite(Node(node, shapes, graph))
    del graph.node[:]
    graph.node.extend(nodes)


class Node:
    """A node to rewrite, its attributes, and what is emitted in its place."""

    def __init__(self, node: Any, shapes: dict[str, list[int | None]], graph: Any):
        self.node, self.shapes, self.graph = node, shapes, graph
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.made: list[Any] = []

    def text(self, name: str, default: str) -> str:
        """An attribute that is text."""
        found = self.attributes.get(name, default)
        return found.decode() if isinstance(found, bytes) else found

    def sizes(self, number: int) -> list[int]:
        """The known sizes of an input behind its batch. Raises Unrepaired."""
        shape = self.shapes.get(self.node.input[number], [])
        if len(shape) != 4 or None in shape[1:]:
            raise Unrepaired(
                f"{self.node.op_type} needs an image of rank 4 and known sizes, not {shape}"
            )
        return [size or 0 for size in shape[1:]]

    def numbers(self, number: int) -> list[int] | None:
        """The integers of a constant input; None without the input. Raises Unrepaired."""
        name = self.node.input[number] if number < len(self.node.input) else ""
        if not name:
            return None
        for weight in self.graph.initializer:
            if weight.name == name:
                return numpy_helper.to_array(weight).reshape(-1).tolist()
        for node in self.graph.node:
            if name in node.output and node.op_type == "Constant":
                value = helper.get_attribute_value(node.attribute[0])
                return np.reshape(
                    numpy_helper.to_array(value) if hasattr(value, "dims") else value, -1
                ).tolist()
        raise Unrepaired(f"{self.node.op_type} needs constants, but {name!r} is none")

    def constant(self, array: np.ndarray) -> str:
        """Adds a weight; returns its name."""
        # Names of outputs are unique in a model, those of branches included.
        name = f"{self.node.output[0]}.irees.{len(self.graph.initializer)}"
        self.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def part(self, x: str, axis: int, start: int, stop: int) -> str:
        """The elements of a range along an axis."""
        given = [self.constant(np.array([n], np.int64)) for n in (start, stop, axis)]
        return self.emit("Slice", [x, *given])

    def emit(self, kind: str, inputs: Sequence[str], last: bool = False, **attributes: Any) -> str:
        """Adds a node; returns the name of its result, that of the whole if it is the last one."""
        own = self.node.output[0]
        name = own if last else f"{own}.irees.result.{len(self.made)}"
        self.made.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name


def _depth_to_space(node: Node) -> list[Any]:
    """y[n, c, h b + i, w b + j] = x[n, (c b + i) b + j, h, w]"""
    if node.text("mode", "DCR") != "CRD":
        return [node.node]
    channels, height, width = node.sizes(0)
    size = node.attributes["blocksize"]
    kept = channels // size**2
    apart = node.constant(np.array([-1, kept, size, size, height, width], np.int64))
    joined = node.constant(np.array([-1, kept, height * size, width * size], np.int64))
    x = node.emit("Reshape", [node.node.input[0], apart])
    x = node.emit("Transpose", [x], perm=[0, 1, 4, 2, 5, 3])
    node.emit("Reshape", [x, joined], last=True)
    return node.made


def _grid_sample(node: Node) -> list[Any]:
    """
    With one pixel of zeros around the image, each place outside of it is clamped to such a pixel.
    A coordinate g is at p = ((g + 1) n - 1) / 2, or (g + 1) (n - 1) / 2 if corners are aligned; the
    padded image has aligned corners and n + 2 pixels.
    """
    if node.text("padding_mode", "zeros") != "zeros" or "cubic" in node.text("mode", "linear"):
        return [node.node]
    _, height, width = node.sizes(0)
    n = np.array([width, height], np.float64)
    aligned = node.attributes.get("align_corners", 0)
    scale, start = ((n - 1) / 2, (n - 1) / 2) if aligned else (n / 2, (n - 1) / 2)
    scale, start, last = (np.float32(v) for v in (scale, start + 1, n + 1))
    image, grid = node.node.input[:2]
    pads = node.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    image = node.emit("Pad", [image, pads])
    place = node.emit("Mul", [grid, node.constant(scale)])
    place = node.emit("Add", [place, node.constant(start)])
    place = node.emit("Max", [place, node.constant(np.zeros(2, np.float32))])
    place = node.emit("Min", [place, node.constant(last)])
    place = node.emit("Mul", [place, node.constant(np.float32(2) / last)])
    place = node.emit("Sub", [place, node.constant(np.ones(2, np.float32))])
    kept = {"mode": node.text("mode", "linear"), "padding_mode": "zeros", "align_corners": 1}
    node.emit("GridSample", [image, place], last=True, **kept)
    return node.made


def _pad(node: Node) -> list[Any]:
    """y = x[n - low:], x, x[:high] along each axis"""
    if node.text("mode", "constant") != "wrap":
        return [node.node]
    pads, shape = node.numbers(1) or [], node.shapes.get(node.node.input[0], [])
    axes = node.numbers(3) or list(range(len(pads) // 2))
    x, lows, highs = node.node.input[0], pads[: len(axes)], pads[len(axes) :]
    for axis, low, high in zip(axes, lows, highs, strict=True):
        size = shape[axis] if -len(shape) <= axis < len(shape) else None
        if low == high == 0:
            continue
        if size is None or not (0 <= low <= size and 0 <= high <= size):
            raise Unrepaired(f"Pad by {low} and {high} needs a size that is known and not smaller")
        ends = [(size - low, size), (0, size), (0, high)]
        parts = [node.part(x, axis, *end) for end in ends if end[0] < end[1]]
        x = node.emit("Concat", parts, axis=axis)
    node.emit("Identity", [x], last=True)
    return node.made


REPAIRS: dict[str, Callable[[Node], list[Any]]] = {
    "DepthToSpace": _depth_to_space,
    "GridSample": _grid_sample,
    "Pad": _pad,
}
