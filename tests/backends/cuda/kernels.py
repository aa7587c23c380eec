"""Programs that the tests of the CUDA backend share: one for each strategy, at odd sizes."""

from __future__ import annotations

from collections.abc import Sequence

ID2 = "affine_map<(i, j) -> (i, j)>"
ROW = "affine_map<(i, j) -> (i)>"
COLUMN = "affine_map<(i, j) -> (j)>"


def elementwise(rows: int | str = 64, columns: int = 128, element: str = "f32") -> str:
    """x + y, in place of nothing."""
    kind = f"tensor<{rows}x{columns}x{element}>"
    return f"""
func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : {kind}
  %e = tensor.empty({"%n" if rows == "?" else ""}) : {kind}
  %r = linalg.add ins(%x, %y : {kind}, {kind}) outs(%e : {kind}) -> {kind}
  return %r : {kind}
}}"""


def softmax(rows: int, columns: int) -> str:
    """softmax along rows"""
    kind = f"tensor<{rows}x{columns}xf32>"
    return f"""
func.func @main(%x: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %r = linalg.softmax dimension(1) ins(%x : {kind}) outs(%e : {kind}) -> {kind}
  return %r : {kind}
}}"""


def row_sums(rows: int | str, columns: int | str, element: str = "f32") -> str:
    """Sums of rows."""
    kind, sums = f"tensor<{rows}x{columns}x{element}>", f"tensor<{rows}x{element}>"
    zero, add = ("0.0", "addf") if element.startswith("f") else ("0", "addi")
    return f"""
func.func @main(%x: {kind}) -> {sums} {{
  %z = arith.constant {zero} : {element}
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : {kind}
  %e = tensor.empty({"%n" if rows == "?" else ""}) : {sums}
  %f = linalg.fill ins(%z : {element}) outs(%e : {sums}) -> {sums}
  %r = linalg.generic {{indexing_maps = [{ID2}, {ROW}], iterator_types = ["parallel", "reduction"]}}
      ins(%x : {kind}) outs(%f : {sums}) {{
  ^bb0(%a: {element}, %o: {element}):
    %s = arith.{add} %o, %a : {element}
    linalg.yield %s : {element}
  }} -> {sums}
  return %r : {sums}
}}"""


def matmul(m: int | str, n: int | str, k: int | str, element: str = "f32") -> str:
    """a * b + c, c along the columns"""
    a, b, r = (f"tensor<{x}x{y}x{element}>" for x, y in ((m, k), (k, n), (m, n)))
    c = f"tensor<{n}x{element}>"
    zero, add = ("0.0", "addf") if element.startswith("f") else ("0", "addi")
    sizes = ", ".join(v for v, s in (("%m", m), ("%n", n)) if s == "?")
    return f"""
func.func @main(%a: {a}, %b: {b}, %c: {c}) -> {r} {{
  %z = arith.constant {zero} : {element}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : {a}
  %n = tensor.dim %b, %c1 : {b}
  %e = tensor.empty({sizes}) : {r}
  %f = linalg.fill ins(%z : {element}) outs(%e : {r}) -> {r}
  %p = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {r}) -> {r}
  %r = linalg.generic {{indexing_maps = [{ID2}, affine_map<(i, j) -> (j)>, {ID2}], iterator_types = ["parallel", "parallel"]}}
      ins(%p, %c : {r}, {c}) outs(%e : {r}) {{
  ^bb0(%x: {element}, %y: {element}, %o: {element}):
    %s = arith.{add} %x, %y : {element}
    linalg.yield %s : {element}
  }} -> {r}
  return %r : {r}
}}"""


def widening_matmul(
    m: int | str, n: int | str, k: int | str, element: str, order: str = "m, k; k, n"
) -> str:
    """a * b of narrow numbers or f32, into f32 or i32; each has its dims in that order."""
    sizes, wide = {"m": m, "n": n, "k": k}, "i32" if element.startswith("i") else "f32"
    sides = [[d.strip() for d in side.split(",")] for side in order.split(";")]
    a, b, r = (
        f"tensor<{'x'.join(str(sizes[d]) for d in dims)}x{kind}>"
        for dims, kind in ((sides[0], element), (sides[1], element), (["m", "n"], wide))
    )
    maps = ", ".join(f"affine_map<(m, n, k) -> ({x})>" for x in (*order.split(";"), "m, n"))
    dynamic = ", ".join(v for v, s in (("%m", m), ("%n", n)) if s == "?")
    widen = f"arith.{'extsi' if wide == 'i32' else 'extf'}"
    multiply, add, zero = ("muli", "addi", "0") if wide == "i32" else ("mulf", "addf", "0.0")
    widened = (
        ""
        if element == wide
        else f"""
    %v = {widen} %x : {element} to {wide}
    %w = {widen} %y : {element} to {wide}"""
    )
    v, w = ("%v", "%w") if widened else ("%x", "%y")
    return f"""
func.func @main(%a: {a}, %b: {b}) -> {r} {{
  %z = arith.constant {zero} : {wide}
  %cm = arith.constant {sides[0].index("m")} : index
  %cn = arith.constant {sides[1].index("n")} : index
  %m = tensor.dim %a, %cm : {a}
  %n = tensor.dim %b, %cn : {b}
  %e = tensor.empty({dynamic}) : {r}
  %f = linalg.fill ins(%z : {wide}) outs(%e : {r}) -> {r}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%f : {r}) {{
  ^bb0(%x: {element}, %y: {element}, %o: {wide}):{widened}
    %p = arith.{multiply} {v}, {w} : {wide}
    %s = arith.{add} %o, %p : {wide}
    linalg.yield %s : {wide}
  }} -> {r}
  return %r : {r}
}}"""


def convolution(size: int = 9, channels: int = 5, filters: int = 7, element: str = "f32") -> str:
    """A 3 x 3 convolution of an image in planes, into f32."""
    out = size - 2
    x = f"tensor<2x{channels}x{size}x{size}x{element}>"
    w = f"tensor<{filters}x{channels}x3x3x{element}>"
    r = f"tensor<2x{filters}x{out}x{out}xf32>"
    return f"""
func.func @main(%x: {x}, %w: {w}) -> {r} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {r}
  %f = linalg.fill ins(%z : f32) outs(%e : {r}) -> {r}
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : {x}, {w}) outs(%f : {r}) -> {r}
  return %r : {r}
}}"""


def group_norm(groups: int, size: int) -> str:
    """x - mean, over the variance, by groups of `size` numbers."""
    kind, one = f"tensor<{groups}x{size}xf32>", f"tensor<{groups}xf32>"
    body = 'iterator_types = ["parallel", "reduction"]'
    return f"""
func.func @main(%x: {kind}) -> {kind} {{
  %z = arith.constant 0.0 : f32
  %n = arith.constant {float(size)} : f32
  %eps = arith.constant 1.0e-5 : f32
  %e = tensor.empty() : {kind}
  %e1 = tensor.empty() : {one}
  %f = linalg.fill ins(%z : f32) outs(%e1 : {one}) -> {one}
  %s = linalg.generic {{indexing_maps = [{ID2}, {ROW}], {body}}} ins(%x : {kind}) outs(%f : {one}) {{
  ^bb0(%a: f32, %o: f32):
    %p = arith.addf %o, %a : f32
    linalg.yield %p : f32
  }} -> {one}
  %c = linalg.generic {{indexing_maps = [{ID2}, {ROW}, {ID2}], iterator_types = ["parallel", "parallel"]}} ins(%x, %s : {kind}, {one}) outs(%e : {kind}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.divf %b, %n : f32
    %p = arith.subf %a, %m : f32
    linalg.yield %p : f32
  }} -> {kind}
  %v = linalg.generic {{indexing_maps = [{ID2}, {ROW}], {body}}} ins(%c : {kind}) outs(%f : {one}) {{
  ^bb0(%a: f32, %o: f32):
    %q = arith.mulf %a, %a : f32
    %p = arith.addf %o, %q : f32
    linalg.yield %p : f32
  }} -> {one}
  %r = linalg.generic {{indexing_maps = [{ID2}, {ROW}, {ID2}], iterator_types = ["parallel", "parallel"]}} ins(%c, %v : {kind}, {one}) outs(%e : {kind}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.divf %b, %n : f32
    %g = arith.addf %m, %eps : f32
    %q = math.rsqrt %g : f32
    %p = arith.mulf %a, %q : f32
    linalg.yield %p : f32
  }} -> {kind}
  return %r : {kind}
}}"""


def transpose(rows: int | str, columns: int | str) -> str:
    """x turned, plus y"""
    x, y = f"tensor<{rows}x{columns}xf32>", f"tensor<{columns}x{rows}xf32>"
    sizes = ", ".join(v for v, s in (("%n", columns), ("%m", rows)) if s == "?")
    return f"""
func.func @main(%x: {x}, %y: {y}) -> {y} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : {x}
  %n = tensor.dim %x, %c1 : {x}
  %e = tensor.empty({sizes}) : {y}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, {ID2}, {ID2}], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %y : {x}, {y}) outs(%e : {y}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }} -> {y}
  return %r : {y}
}}"""


def _compare(element: str, predicate: str) -> str:
    return f"arith.cmp{'i' if element[0] == 'i' else 'f'} {predicate}, %a, %b : {element}"


def sort(rows: int | str, columns: int | str, element: str = "f32", predicate: str = "ole") -> str:
    """Rows in ascending order, and where each number came from."""
    v, i = f"tensor<{rows}x{columns}x{element}>", f"tensor<{rows}x{columns}xi64>"
    return f"""
func.func @main(%x: {v}, %n: {i}) -> ({v}, {i}) {{
  %r:2 = iree_linalg_ext.sort dimension(1) outs(%x, %n : {v}, {i}) {{
  ^bb0(%a: {element}, %b: {element}, %c: i64, %d: i64):
    %p = {_compare(element, predicate)}
    iree_linalg_ext.yield %p : i1
  }} -> {v}, {i}
  return %r#0, %r#1 : {v}, {i}
}}"""


def scatter(rows: int, columns: int) -> str:
    """Adds rows to those that an index names, which may be named twice or lie outside."""
    t, u, i = f"tensor<{rows}x{columns}xf32>", f"tensor<?x{columns}xf32>", "tensor<?x1xi32>"
    return f"""
func.func @main(%t: {t}, %u: {u}, %i: {i}) -> {t} {{
  %r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
      ins(%u, %i : {u}, {i}) outs(%t : {t}) {{
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %b, %a : f32
    iree_linalg_ext.yield %s : f32
  }} -> {t}
  return %r : {t}
}}"""


def scatter_elements(
    count: int | str, *shape: int | str, element: str = "f32", body: str = "addf %b, %a"
) -> str:
    """Combines single elements with those that their indices name."""
    return scatter_of(shape, [count], len(shape), element=element, body=body)


def argmax(rows: int | str, columns: int | str, element: str = "f32", predicate: str = "") -> str:
    """The greatest of each row and where it is first, both from what the outputs begin with."""
    x, best = f"tensor<{rows}x{columns}x{element}>", f"tensor<{rows}x{element}>"
    where, is_float = f"tensor<{rows}xi64>", element.startswith(("f", "bf"))
    greatest = "arith.maximumf" if is_float else "arith.maxsi"
    compare = (
        f"arith.cmpf {predicate or 'ogt'}," if is_float else f"arith.cmpi {predicate or 'sgt'},"
    )
    return f"""
func.func @main(%x: {x}, %best: {best}, %where: {where}) -> ({best}, {where}) {{
  %r:2 = linalg.generic {{indexing_maps = [{ID2}, {ROW}, {ROW}], iterator_types = ["parallel", "reduction"]}}
      ins(%x : {x}) outs(%best, %where : {best}, {where}) {{
  ^bb0(%a: {element}, %b: {element}, %i: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %m = {greatest} %a, %b : {element}
    %p = {compare} %a, %b : {element}
    %s = arith.select %p, %k, %i : i64
    linalg.yield %m, %s : {element}, i64
  }} -> ({best}, {where})
  return %r#0, %r#1 : {best}, {where}
}}"""


def arg_compare(rows: int, columns: int) -> str:
    """The smallest of each row, the first of equal ones, and where."""
    x, best, where = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>", f"tensor<{rows}xi32>"
    return f"""
func.func @main(%x: {x}, %best: {best}, %where: {where}) -> ({best}, {where}) {{
  %r:2 = iree_linalg_ext.arg_compare dimension(1) ins(%x : {x}) outs(%best, %where : {best}, {where}) {{
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  }} -> {best}, {where}
  return %r#0, %r#1 : {best}, {where}
}}"""


def column_sums(rows: int | str, columns: int, element: str = "f32") -> str:
    """Sums of columns."""
    kind, sums = f"tensor<{rows}x{columns}x{element}>", f"tensor<{columns}x{element}>"
    zero, add = ("0.0", "addf") if element.startswith("f") else ("0", "addi")
    return f"""
func.func @main(%x: {kind}) -> {sums} {{
  %z = arith.constant {zero} : {element}
  %e = tensor.empty() : {sums}
  %f = linalg.fill ins(%z : {element}) outs(%e : {sums}) -> {sums}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, {ROW}], iterator_types = ["parallel", "reduction"]}}
      ins(%x : {kind}) outs(%f : {sums}) {{
  ^bb0(%a: {element}, %o: {element}):
    %s = arith.{add} %o, %a : {element}
    linalg.yield %s : {element}
  }} -> {sums}
  return %r : {sums}
}}"""


def attention(
    batch: int, m: int, keys: int, features: int, element: str = "f32", mask: str | None = None
) -> str:
    """softmax(q . k / sqrt(features) + mask) . v"""
    q, k = (
        f"tensor<{batch}x{m}x{features}x{element}>",
        f"tensor<{batch}x{keys}x{features}x{element}>",
    )
    masked = f"tensor<{batch}x{m}x{keys}x{mask}>"
    names = ", ".join(f"affine_map<(b, m, n, d, k) -> ({x})>" for x in (
        "b, m, d", "b, k, d", "b, k, n", "", *(["b, m, k"] if mask else []), "b, m, n"))  # fmt: skip
    return f"""
func.func @main(%q: {q}, %k: {k}, %v: {k}{f", %mask: {masked}" if mask else ""}) -> {q} {{
  %scale = arith.constant {features**-0.5} : f32
  %e = tensor.empty() : {q}
  %r = iree_linalg_ext.attention {{indexing_maps = [{names}]}}
      ins(%q, %k, %v, %scale{", %mask" if mask else ""} : {q}, {k}, {k}, f32{f", {masked}" if mask else ""})
      outs(%e : {q}) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> {q}
  return %r : {q}
}}"""


def topk(
    rows: int | str, columns: int | str, k: int | str, element: str = "f32", predicate: str = "oge"
) -> str:
    """The k greatest of each row in order, and where they are; what comes second says how many."""
    x, v, i = (f"tensor<{rows}x{n}x{e}>" for n, e in ((columns, element), (k, element), (k, "i32")))
    empty, sizes = "", ""
    if "?" in v:
        sizes = ", ".join(f"%n{d}" for d, n in enumerate((rows, k)) if n == "?")
        empty = "\n".join(
            f"  %c{d} = arith.constant {d} : index\n  %n{d} = tensor.dim %like, %c{d} : {v}"
            for d in range(2)
        )
    return f"""
func.func @main(%x: {x}{f", %like: {v}" if sizes else ""}) -> ({v}, {i}) {{
{empty}
  %e = tensor.empty({sizes}) : {v}
  %f = tensor.empty({sizes}) : {i}
  %r:2 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x : {x}) outs(%e, %f : {v}, {i}) {{
  ^bb0(%a: {element}, %b: {element}):
    %p = {_compare(element, predicate)}
    iree_linalg_ext.yield %p : i1
  }} -> {v}, {i}
  return %r#0, %r#1 : {v}, {i}
}}"""


def narrowed_matmul(m: int, n: int, k: int, element: str) -> str:
    """a * b added up in f32, and rounded to f16."""
    a, b = f"tensor<{m}x{k}x{element}>", f"tensor<{k}x{n}x{element}>"
    wide, half = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{n}xf16>"
    return f"""
func.func @main(%a: {a}, %b: {b}) -> {half} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {wide}
  %f = linalg.fill ins(%z : f32) outs(%e : {wide}) -> {wide}
  %p = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {wide}) -> {wide}
  %o = tensor.empty() : {half}
  %r = linalg.generic {{indexing_maps = [{ID2}, {ID2}], iterator_types = ["parallel", "parallel"]}}
      ins(%p : {wide}) outs(%o : {half}) {{
  ^bb0(%x: f32, %y: f16):
    %s = arith.truncf %x : f32 to f16
    linalg.yield %s : f16
  }} -> {half}
  return %r : {half}
}}"""


def followed_matmul(m: int, n: int, k: int) -> str:
    """A polynomial of a * b in f32, too long to be done in registers."""
    a, b, r = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    terms = "".join(
        f"""
    %p{i} = arith.mulf %t{i - 1}, %half : f32
    %t{i} = arith.addf %p{i}, %x : f32"""
        for i in range(1, 8)
    )
    return f"""
func.func @main(%a: {a}, %b: {b}) -> {r} {{
  %z = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : {r}
  %f = linalg.fill ins(%z : f32) outs(%e : {r}) -> {r}
  %p = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {r}) -> {r}
  %r = linalg.generic {{indexing_maps = [{ID2}, {ID2}], iterator_types = ["parallel", "parallel"]}}
      ins(%p : {r}) outs(%e : {r}) {{
  ^bb0(%x: f32, %y: f32):
    %t0 = arith.mulf %x, %half : f32{terms}
    linalg.yield %t7 : f32
  }} -> {r}
  return %r : {r}
}}"""


def activated_matmul(m: int, n: int, k: int, element: str = "f16", init: float | None = 0.0) -> str:
    """max(a * b + bias, 0) * 0.5 in batches of 2, narrowed; `init` of None adds to an argument."""
    a, b = f"tensor<2x{m}x{k}x{element}>", f"tensor<2x{n}x{k}x{element}>"
    wide, narrow, bias = (
        f"tensor<2x{m}x{n}xf32>",
        f"tensor<2x{m}x{n}x{element}>",
        f"tensor<{n}xf32>",
    )
    maps = ", ".join(
        f"affine_map<(b, m, n, k) -> ({x})>" for x in ("b, m, k", "b, n, k", "b, m, n")
    )
    id3 = "affine_map<(b, m, n) -> (b, m, n)>"
    fill = f"""
  %z = arith.constant {init} : f32
  %start = linalg.fill ins(%z : f32) outs(%e : {wide}) -> {wide}"""
    return f"""
func.func @main(%a: {a}, %b: {b}, %bias: {bias}{f", %start: {wide}" if init is None else ""}) -> {narrow} {{
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : {wide}{"" if init is None else fill}
  %p = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%start : {wide}) {{
  ^bb0(%x: {element}, %y: {element}, %o: f32):
    %v = arith.extf %x : {element} to f32
    %w = arith.extf %y : {element} to f32
    %q = arith.mulf %v, %w : f32
    %s = arith.addf %o, %q : f32
    linalg.yield %s : f32
  }} -> {wide}
  %f = tensor.empty() : {narrow}
  %r = linalg.generic {{indexing_maps = [{id3}, affine_map<(b, m, n) -> (n)>, {id3}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%p, %bias : {wide}, {bias}) outs(%f : {narrow}) {{
  ^bb0(%x: f32, %y: f32, %o: {element}):
    %s = arith.addf %x, %y : f32
    %t = arith.maximumf %s, %zero : f32
    %u = arith.mulf %t, %half : f32
    %v = arith.truncf %u : f32 to {element}
    linalg.yield %v : {element}
  }} -> {narrow}
  return %r : {narrow}
}}"""


def linear(batch: int, rows: int, columns: int, depth: int, element: str = "f16") -> str:
    """Each of several matrices times one that is turned, into f32."""
    a, b = f"tensor<{batch}x{rows}x{depth}x{element}>", f"tensor<{columns}x{depth}x{element}>"
    r = f"tensor<{batch}x{rows}x{columns}xf32>"
    maps = ", ".join(f"affine_map<(b, m, n, k) -> ({x})>" for x in ("b, m, k", "n, k", "b, m, n"))
    return f"""
func.func @main(%a: {a}, %b: {b}) -> {r} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {r}
  %f = linalg.fill ins(%z : f32) outs(%e : {r}) -> {r}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%f : {r}) {{
  ^bb0(%x: {element}, %y: {element}, %o: f32):
    %v = arith.extf %x : {element} to f32
    %w = arith.extf %y : {element} to f32
    %p = arith.mulf %v, %w : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> {r}
  return %r : {r}
}}"""


def scatter_of(
    target: Sequence[int | str],
    lead: Sequence[int | str],
    depth: int,
    *,
    unique: bool = False,
    element: str = "f32",
    body: str = "addf %b, %a",
    index: str = "i32",
    order: Sequence[int] = (),
) -> str:
    """A scatter of any rank: updates `lead` x slice, each index of `depth` of the target's dims."""
    t, *of = (
        f"tensor<{'x'.join(map(str, [*sizes, kind]))}>"
        for sizes, kind in (
            (target, element),
            ((*lead, *target[depth:]), element),
            ((*lead, depth), index),
        )
    )
    u, i = of
    return f"""
func.func @main(%t: {t}, %u: {u}, %i: {i}) -> {t} {{
  %one = arith.constant {"1.0" if element[0] in "fb" else "1"} : {element}
  %r = iree_linalg_ext.scatter dimension_map = {list(order or range(depth))}
      unique_indices({str(unique).lower()}) ins(%u, %i : {u}, {i}) outs(%t : {t}) {{
  ^bb0(%a: {element}, %b: {element}):
    {f"%s = arith.{body} : {element}" if body else ""}
    iree_linalg_ext.yield %{"s" if body else "a"} : {element}
  }} -> {t}
  return %r : {t}
}}"""


def epilogue_matmul(
    m: int, n: int, k: int, element: str, *, residual: bool = False, order: str = "m, k; k, n"
) -> str:
    """a * b plus a bias along columns, or plus a matrix of the result's size, in one kind of float."""
    sizes = {"m": m, "n": n, "k": k}
    sides = [[d.strip() for d in side.split(",")] for side in order.split(";")]
    a, b = (f"tensor<{'x'.join(str(sizes[d]) for d in dims)}x{element}>" for dims in sides)
    wide, narrow = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{n}x{element}>"
    added, where = (narrow, ID2) if residual else (f"tensor<{n}x{element}>", COLUMN)
    maps = ", ".join(f"affine_map<(m, n, k) -> ({x})>" for x in (*order.split(";"), "m, n"))

    x, y, s = ("%x", "%y", "%s") if element == "f32" else ("%wx", "%wy", "%t")

    def widened(name: str) -> str:
        return "" if element == "f32" else f"%w{name} = arith.extf %{name} : {element} to f32"

    return f"""
func.func @main(%a: {a}, %b: {b}, %c: {added}) -> {narrow} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {wide}
  %g = tensor.empty() : {narrow}
  %f = linalg.fill ins(%z : f32) outs(%e : {wide}) -> {wide}
  %p = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%f : {wide}) {{
  ^bb0(%x: {element}, %y: {element}, %o: f32):
    {widened("x")}
    {widened("y")}
    %q = arith.mulf {x}, {y} : f32
    %s = arith.addf %o, %q : f32
    linalg.yield %s : f32
  }} -> {wide}
  %r = linalg.generic {{indexing_maps = [{ID2}, {where}, {ID2}], iterator_types = ["parallel", "parallel"]}}
      ins(%p, %c : {wide}, {added}) outs(%g : {narrow}) {{
  ^bb0(%x: f32, %y: {element}, %o: {element}):
    {widened("y")}
    %s = arith.addf %x, {y} : f32
    {"" if element == "f32" else f"%t = arith.truncf %s : f32 to {element}"}
    linalg.yield {s} : {element}
  }} -> {narrow}
  return %r : {narrow}
}}"""


def embedding(count: int, rows: int, columns: int, element: str = "f32") -> str:
    """Rows of a table by their numbers, which are checked, as PyTorch's importer writes it."""
    i, t = f"tensor<{count}xi64>", f"tensor<{rows}x{columns}x{element}>"
    r = f"tensor<{count}x{columns}x{element}>"
    return f"""
func.func @main(%i: {i}, %t: {t}) -> {r} {{
  %zero = arith.constant 0 : i64
  %size = arith.constant {rows} : i64
  %e = tensor.empty() : {r}
  %r = linalg.generic {{indexing_maps = [{ROW}, {ID2}], iterator_types = ["parallel", "parallel"]}}
      ins(%i : {i}) outs(%e : {r}) {{
  ^bb0(%n: i64, %o: {element}):
    %less = arith.cmpi slt, %n, %size : i64
    cf.assert %less, "index must be smaller than dim size"
    %more = arith.cmpi sge, %n, %zero : i64
    cf.assert %more, "index must be larger or equal to 0"
    %row = arith.index_cast %n : i64 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %t[%row, %column] : {t}
    linalg.yield %v : {element}
  }} -> {r}
  return %r : {r}
}}"""


def scan(
    rows: int | str,
    columns: int | str,
    element: str = "f32",
    *,
    inclusive: bool = True,
    combiner: str | None = None,
    dim: int = 1,
) -> str:
    """Sums of the first numbers of each row (column), for all of them, and the last of the sums."""
    x = f"tensor<{rows}x{columns}x{element}>"
    s = f"tensor<{rows if dim else columns}x{element}>"
    combiner = combiner or ("addi" if element.startswith("i") else "addf")
    dynamic = ", ".join(v for v, size in (("%m", rows), ("%n", columns)) if size == "?")
    return f"""
func.func @main(%x: {x}, %start: {s}) -> ({x}, {s}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : {x}
  %n = tensor.dim %x, %c1 : {x}
  %e = tensor.empty({dynamic}) : {x}
  %r:2 = iree_linalg_ext.scan dimension({dim}) inclusive({str(inclusive).lower()})
      ins(%x : {x}) outs(%e, %start : {x}, {s}) {{
  ^bb0(%a: {element}, %b: {element}):
    %s = arith.{combiner} %a, %b : {element}
    iree_linalg_ext.yield %s : {element}
  }} -> {x}, {s}
  return %r#0, %r#1 : {x}, {s}
}}"""


def checked_steps() -> str:
    """Adds 1 to a number until it is 10, on the device; a negative one traps, and would stay."""
    return """
func.func @main(%x: tensor<1xi64>) -> tensor<1xi64> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %ten = arith.constant 10 : i64
  %r = scf.while (%t = %x) : (tensor<1xi64>) -> tensor<1xi64> {
    %v = tensor.extract %t[%c0] : tensor<1xi64>
    %go = arith.cmpi slt, %v, %ten : i64
    scf.condition(%go) %t : tensor<1xi64>
  } do {
  ^bb0(%t: tensor<1xi64>):
    %e = tensor.empty() : tensor<1xi64>
    %n = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%t : tensor<1xi64>) outs(%e : tensor<1xi64>) {
    ^bb0(%v: i64, %o: i64):
      %natural = arith.cmpi sge, %v, %zero : i64
      cf.assert %natural, "a step must not be negative"
      %next = arith.addi %v, %one : i64
      %kept = arith.select %natural, %next, %v : i64
      linalg.yield %kept : i64
    } -> tensor<1xi64>
    scf.yield %n : tensor<1xi64>
  }
  return %r : tensor<1xi64>
}
"""


def complex_functions(element: str) -> str:
    """The sum of all functions of a complex number."""
    kind = f"complex<{element}>"
    names = ("exp", "log", "sqrt", "sin", "cos", "tanh")
    calls = "\n    ".join(f"%{name} = complex.{name} %a : {kind}" for name in names)
    sums = "\n    ".join(
        f"%s{i + 1} = complex.add %s{i}, %{name} : {kind}" for i, name in enumerate(names)
    )
    return f"""
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4096x{kind}>, %y: tensor<4096x{kind}>) -> tensor<4096x{kind}> {{
  %0 = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}} ins(%x : tensor<4096x{kind}>) outs(%y : tensor<4096x{kind}>) {{
  ^bb0(%a: {kind}, %b: {kind}):
    {calls}
    %p = complex.pow %a, %b : {kind}
    %s0 = complex.div %p, %b : {kind}
    {sums}
    linalg.yield %s{len(names)} : {kind}
  }} -> tensor<4096x{kind}>
  return %0 : tensor<4096x{kind}>
}}
"""
