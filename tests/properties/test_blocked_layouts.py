"""Programs of convolutions give what they gave when channels lie in blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.remarks import collect
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_agrees, interpret, passes_agree
from irees.transforms import load_pass

FACTOR = profiles.load()
PASS = "irees-propagate-blocked-layouts"
ADD, MUL, MAX = "arith.addf", "arith.mulf", "arith.maximumf"


@dataclass(frozen=True)
class Value:
    """A tensor of channels and two dims of pixels, in some order."""

    name: str
    order: str
    channels: int
    height: int
    width: int

    def sizes(self) -> dict[str, int]:
        return {"n": 2, "c": self.channels, "h": self.height, "w": self.width}


@dataclass
class Network:
    """A function that grows op by op. Numbers are small integers, so every sum is exact."""

    data: DataObject
    dynamic: bool
    batch: bool
    lines: list[str] = field(default_factory=list)
    sizes: dict[int, str] = field(default_factory=dict)
    count: int = 0
    values: list[Value] = field(default_factory=list)

    def draw(self, *choices):
        return self.data.draw(st.sampled_from(choices))

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def order(self) -> str:
        return "nchw" if self.batch else "chw"

    def shape(self, v: Value) -> list[str]:
        def one(d):
            return "?" if self.dynamic and d in "hwn" else str(v.sizes()[d])

        return [one(d) for d in v.order]

    def kind(self, v: Value) -> str:
        return f"tensor<{'x'.join([*self.shape(v), 'f32'])}>"

    def size(self, n: int) -> str:
        """A dim that only the argument of that number knows."""
        return self.sizes.setdefault(n, f"%n{n}")

    def empty(self, v: Value) -> str:
        name = self.name()
        known = [self.size(v.sizes()[d]) for d, s in zip(v.order, self.shape(v)) if s == "?"]
        self.lines.append(f"{name} = tensor.empty({', '.join(known)}) : {self.kind(v)}")
        return name

    def filled(self, v: Value, number: str = "%zero") -> str:
        init, name = self.empty(v), self.name()
        self.lines.append(
            f"{name} = linalg.fill ins({number} : f32) outs({init} : {self.kind(v)})"
            f" -> {self.kind(v)}"
        )
        return name

    def generic(self, loops, reads, inputs, kinds, out, init, body) -> str:
        """loops: `hwc/yx`, parallel and reduced; reads: what each operand is indexed by."""
        name, (parallel, reduced) = self.name(), loops.split("/")
        dims = ", ".join(parallel + reduced)
        maps = ", ".join(f"affine_map<({dims}) -> ({', '.join(read)})>" for read in reads)
        types = '"parallel", ' * len(parallel) + '"reduction", ' * len(reduced)
        args = ", ".join(f"%a{k}: f32" for k in range(len(inputs) + 1))
        self.lines.append(
            f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{types[:-2]}]}}"
            f" ins({', '.join(inputs)} : {', '.join(kinds)}) outs({init} : {out}) {{\n"
            f"^bb0({args}):\n{body}\n}} -> {out}"
        )
        return name

    def weights(self, shape: list[int]) -> tuple[str, str]:
        name, kind = self.name(), f"tensor<{'x'.join(map(str, shape))}xf32>"
        seed = self.data.draw(st.integers(0, 99))
        numbers = np.random.default_rng(seed).integers(-2, 3, shape).astype(float).tolist()
        self.lines.append(f"{name} = arith.constant dense<{numbers}> : {kind}")
        return name, kind

    def convolution(self, x: Value) -> Value:
        deep = self.draw(True, True, False)
        k, y = (self.draw(1, 1, 2, 3) for _ in range(2))
        k, y = min(k, x.height), min(y, x.width)
        stride, dilation = self.draw(1, 1, 2), self.draw(1, 1, 2)
        k, y = (1 if (t - 1) * dilation >= s else t for t, s in ((k, x.height), (y, x.width)))
        channels = self.draw(1, 3, 4, 6, 8, 8, 12) if deep else x.channels
        height = (x.height - (k - 1) * dilation - 1) // stride + 1
        width = (x.width - (y - 1) * dilation - 1) // stride + 1
        v = Value("", self.order(), channels, height, width)
        # Windows of one element are no loop at all.
        taps = ("p" if k > 1 else "") + ("q" if y > 1 else "")
        image = {
            "h": f"h * {stride}" + (f" + p * {dilation}" if k > 1 else ""),
            "w": f"w * {stride}" + (f" + q * {dilation}" if y > 1 else ""),
            "n": "n",
            "c": "k" if deep else "c",
        }
        if stride == 1:
            image |= {"h": image["h"].replace(" * 1", ""), "w": image["w"].replace(" * 1", "")}
        own = self.draw("ck" + taps, taps + "kc") if deep else self.draw("c" + taps, taps + "c")
        extents = {"c": channels, "k": x.channels, "p": k, "q": y}
        weights, kind = self.weights([extents[d] for d in own])
        loops = self.draw(v.order, v.order[:-3] + "hwc") + "/" + ("k" if deep else "") + taps
        if not loops.split("/")[1]:
            return self.elementwise(x)
        init = self.draw(self.filled, self.bias)(v)
        body = f"%m = {MUL} %a0, %a1 : f32\n%s = {ADD} %a2, %m : f32\nlinalg.yield %s : f32"
        reads = [[image[d] for d in x.order], list(own), list(v.order)]
        name = self.generic(
            loops, reads, [x.name, weights], [self.kind(x), kind], self.kind(v), init, body
        )
        return Value(name, *list(vars(v).values())[1:])

    def bias(self, v: Value) -> str:
        weights, kind = self.weights([v.channels])
        body = "linalg.yield %a0 : f32"
        reads = [["c"], list(v.order)]
        return self.generic(
            v.order + "/", reads, [weights], [kind], self.kind(v), self.empty(v), body
        )

    def elementwise(self, x: Value) -> Value:
        """max(x + bias, 0), perhaps with its dims in another order"""
        order = self.draw(
            x.order, x.order, x.order, "".join(sorted(x.order)), self.order()[:-3] + "hwc"
        )
        v = Value("", order, *list(vars(x).values())[2:])
        weights, kind = self.weights([v.channels])
        body = (
            f"%s = {ADD} %a0, %a1 : f32\n%i = linalg.index {self.draw(0, 1)} : index\n"
            "%j = arith.index_cast %i : index to i32\n%f = arith.sitofp %j : i32 to f32\n"
            f"%t = {self.draw(ADD, MAX)} %s, %f : f32\nlinalg.yield %t : f32"
        )
        reads, inputs, kinds = [list(x.order), ["c"]], [x.name, weights], [self.kind(x), kind]
        name = self.generic(
            order + "/", [*reads, list(order)], inputs, kinds, self.kind(v), self.empty(v), body
        )
        return Value(name, *list(vars(v).values())[1:])

    def residual(self, x: Value) -> Value:
        like = [v for v in self.values if (v.sizes(), v.order) == (x.sizes(), x.order)]
        other, crossed = self.draw(*like), x.order
        if x.channels == x.height and self.draw(True, False) and not self.dynamic:
            crossed = x.order.replace("c", "_").replace("h", "c").replace("_", "h")
        body = f"%s = {ADD} %a0, %a1 : f32\nlinalg.yield %s : f32"
        reads = [list(x.order), list(crossed), list(x.order)]
        name = self.generic(
            x.order + "/", reads, [x.name, other.name], [self.kind(x)] * 2, self.kind(x),
            self.empty(x), body,
        )  # fmt: skip
        return Value(name, *list(vars(x).values())[1:])

    def pool(self, x: Value) -> Value:
        k, stride = min(self.draw(2, 3), x.height, x.width), self.draw(1, 2)
        if k < 2:
            return x
        height, width = ((s - k) // stride + 1 for s in (x.height, x.width))
        v = Value("", x.order, x.channels, height, width)
        step = f" * {stride}" if stride > 1 else ""
        read = [{"h": f"h{step} + p", "w": f"w{step} + q"}.get(d, d) for d in x.order]
        window = self.name()
        self.lines.append(f"{window} = tensor.empty() : tensor<{k}x{k}xf32>")
        op = self.draw(MAX, ADD)
        init = self.filled(v, "%low" if op == MAX else "%zero")
        body = f"%s = {op} %a2, %a0 : f32\nlinalg.yield %s : f32"
        name = self.generic(
            x.order + "/pq", [read, ["p", "q"], list(x.order)], [x.name, window],
            [self.kind(x), f"tensor<{k}x{k}xf32>"], self.kind(v), init, body,
        )  # fmt: skip
        return Value(name, *list(vars(v).values())[1:])

    def pad(self, x: Value) -> Value:
        """x inside of zeros; of channels as well, at times"""
        before = {d: self.draw(0, 1, 2) if d in "hw" else 0 for d in x.order}
        before["c"] = self.draw(0, 0, 0, 2, 4, 3) if x.channels < 16 else 0
        grow = before["c"] + (self.draw(0, 4) if before["c"] else 0)
        v = Value("", x.order, x.channels + grow, x.height + 2 * before["h"], x.width + before["w"])
        target, name = self.filled(v), self.name()
        sizes = [
            self.size(x.sizes()[d]) if s == "?" else s
            for d, s in zip(x.order, self.shape(x), strict=True)
        ]
        offsets, ones = [str(before[d]) for d in x.order], ["1"] * len(x.order)
        self.lines.append(
            f"{name} = tensor.insert_slice {x.name} into {target}[{', '.join(offsets)}]"
            f" [{', '.join(sizes)}] [{', '.join(ones)}] : {self.kind(x)} into {self.kind(v)}"
        )
        return Value(name, *list(vars(v).values())[1:])

    def part(self, x: Value) -> Value:
        """Some channels"""
        count, step = self.draw(1, 2, 4, 4, 8), self.draw(1, 1, 1, 2)
        if count * step > x.channels:
            return x
        start = self.data.draw(st.integers(0, x.channels - (count - 1) * step - 1))
        v, name = Value("", x.order, count, x.height, x.width), self.name()
        sizes = [
            self.size(x.sizes()[d]) if s == "?" else s
            for d, s in zip(v.order, self.shape(v), strict=True)
        ]
        offsets = [str(start) if d == "c" else "0" for d in x.order]
        steps = [str(step) if d == "c" else "1" for d in x.order]
        self.lines.append(
            f"{name} = tensor.extract_slice {x.name}[{', '.join(offsets)}]"
            f" [{', '.join(sizes)}] [{', '.join(steps)}] : {self.kind(x)} to {self.kind(v)}"
        )
        return Value(name, *list(vars(v).values())[1:])

    def reduced(self, x: Value) -> tuple[str, str]:
        """A sum over pixels or channels, or the value with its pixels in one dim."""
        if not self.dynamic and x.order[-2:] == "hw" and self.draw(True, False):
            count, rank, name = x.height * x.width, len(x.order), self.name()
            groups = [[d] for d in range(rank - 2)] + [[rank - 2, rank - 1]]
            kind = f"tensor<{'x'.join([*self.shape(x)[:-2], str(count), 'f32'])}>"
            self.lines.append(
                f"{name} = tensor.collapse_shape {x.name} {groups} : {self.kind(x)} into {kind}"
            )
            return name, kind
        kept = self.draw("c", "hw")
        shape = dict(zip(x.order, self.shape(x), strict=True))
        kind = f"tensor<{'x'.join([*(shape[d] for d in kept), 'f32'])}>"
        init, filled = self.name(), self.name()
        known = [self.size(x.sizes()[d]) for d in kept if shape[d] == "?"]
        self.lines.append(f"{init} = tensor.empty({', '.join(known)}) : {kind}")
        self.lines.append(
            f"{filled} = linalg.fill ins(%zero : f32) outs({init} : {kind}) -> {kind}"
        )
        loops = kept + "/" + "".join(d for d in x.order if d not in kept)
        body = f"%s = {ADD} %a1, %a0 : f32\nlinalg.yield %s : f32"
        reads = [list(x.order), list(kept)]
        return self.generic(loops, reads, [x.name], [self.kind(x)], kind, filled, body), kind


def network(data: DataObject) -> tuple[str, list[np.ndarray]]:
    """The text of a random network and its inputs."""
    net = Network(data, data.draw(st.booleans()), data.draw(st.booleans()))
    channels, height, width = net.draw(3, 4, 8), net.draw(1, 5, 8), net.draw(4, 7)
    values = net.values
    values.append(Value("%x", net.order(), channels, height, width))
    values.append(net.convolution(values[0]))
    ops = [*[net.convolution] * 3, net.elementwise, net.residual, net.pool, net.pad]
    ops += [net.part] * 2
    for _ in range(data.draw(st.integers(1, 6))):
        values.append(data.draw(st.sampled_from(ops))(data.draw(st.sampled_from(values[-2:]))))
    results = [(v.name, net.kind(v)) for v in (values[-1], data.draw(st.sampled_from(values)))]
    if data.draw(st.booleans()):
        results.append(net.reduced(data.draw(st.sampled_from(values))))
    head = ["%zero = arith.constant 0.0 : f32", "%low = arith.constant -9.0e9 : f32",
            "%c0 = arith.constant 0 : index"]  # fmt: skip
    arguments, inputs = [f"%x: {net.kind(values[0])}"], []
    numbers = np.random.default_rng(data.draw(st.integers(0, 99)))
    inputs.append(numbers.integers(-3, 4, [values[0].sizes()[d] for d in values[0].order]))
    for n, name in net.sizes.items():
        arguments.append(f"%s{n}: tensor<?xf32>")
        inputs.append(np.zeros(n))
        head.append(f"{name} = tensor.dim %s{n}, %c0 : tensor<?xf32>")
    kinds = ", ".join(k for _, k in results)
    text = (
        f"func.func @main({', '.join(arguments)}) -> ({kinds}) {{\n"
        + "\n".join([*head, *net.lines])
        + f"\nreturn {', '.join(v for v, _ in results)} : {kinds}\n}}\n"
    )
    return text, [i.astype(np.float32) for i in inputs]


@settings(max_examples=150 * FACTOR)
@given(st.data())
def test_blocks_change_nothing(data):
    text, inputs = network(data)
    cost = data.draw(st.sampled_from([1, 1, 16, 256]))
    passes = [
        load_pass("irees-assign-target")(facts="vector_bytes=16"),
        load_pass("irees-generalize-linalg-named-ops")(),
        load_pass(PASS)(copy_flops=cost),
    ]
    with collect() as remarks:
        _, wrong = passes_agree(text, passes, *inputs)
    assert wrong == []
    event(f"{min(sum(r.kind == 'passed' for r in remarks), 3)} convolutions in blocks")
    event(f"{min(sum('its blocks' in r.text for r in remarks), 3)} unpacked")
    event(f"{min(sum('put into' in r.text for r in remarks), 3)} packed")


@settings(max_examples=10 * FACTOR, deadline=None)
@given(st.data())
def test_compiled_blocks_change_nothing(data):
    text, inputs = network(data)
    case = Case("main", tuple(inputs))
    module = import_mlir(text)
    expected = interpret(module, [case])
    for name, options in (
        ("irees-assign-target", {"facts": "vector_bytes=16"}),
        ("irees-generalize-linalg-named-ops", {}),
        (PASS, {"copy_flops": 1}),
    ):
        load_pass(name)(**options).apply(get_context(), module)
    assert compiled_agrees(module, [case], expected, isolate=False) == []
