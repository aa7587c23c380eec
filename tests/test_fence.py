"""Nothing but an IreesError leaves a public entry; a bug comes with a file that shows it again."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import irees
from irees import fence
from irees.errors import (
    ArgumentError,
    InternalError,
    IreesError,
    LimitExceededError,
    OutOfMemoryError,
    ParseError,
)
from irees.fence import as_irees_error, describe, fenced, let_through
from irees.runtime.device_program import DeviceFunction, DeviceProgram
from irees.runtime.program import Function, Program
from irees.universe import UNIVERSE

TEXT = """
func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = arith.addf %x, %x : tensor<3xf32>
  return %y : tensor<3xf32>
}
"""
PLAIN = {"errors", "Program", "Target"}
"""Public names that are modules or classes."""
INLINE = {"Function.run", "Program.__call__"}
"""Entries that are called often: a `try` of their own, which costs nothing, is their fence."""
HARMLESS = {
    "Function.__call__",  # `run` and an index
    "Function.frame", "Function.launch",  # of the back end of torch.compile
    "Program.__repr__", "Program.__reduce__", "Program.constant_address", "Program.tuning",
    "DeviceFunction.__repr__", "DeviceFunction.__init__", "Function.__repr__", "Function.__init__",
    "DeviceProgram.__repr__", "DeviceProgram.main", "DeviceProgram.trace", "DeviceProgram.note",
}  # fmt: skip


@pytest.fixture
def crashes(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_every_public_name_is_fenced():
    # What needs torch is there where torch is, as in `make test-models`.
    names = set(irees.__all__) - PLAIN - ({"explain"} if find_spec("torch") is None else set())
    assert [n for n in names if not hasattr(getattr(irees, n), "__fenced__")] == []
    assert irees.Target.parse.__fenced__


def test_what_needs_torch_says_so():
    code = """if True:
        import sys
        sys.modules["torch"] = None
        import irees, irees.errors
        for use in (lambda: irees.explain, lambda: irees.import_torch(print)):
            try:
                use()
            except irees.errors.UnsupportedError as error:
                assert "irees[torch]" in str(error), error
            else:
                raise AssertionError("no error")
        """
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("home", [Program, Function, DeviceProgram, DeviceFunction])
def test_every_public_method_is_fenced(home):
    special = ("__init__", "__call__", "__repr__", "__reduce__", "__deepcopy__")
    methods = {n: v for n, v in vars(home).items() if n in special or not n.startswith("_")}
    open_ = {
        f"{home.__name__}.{name}"
        for name, value in methods.items()
        if callable(value) and not hasattr(value, "__fenced__")
    }
    assert open_ <= INLINE | HARMLESS


def test_the_inline_fences_are_there():
    for name in INLINE:
        home, _, method = name.partition(".")
        source = inspect.getsource(
            getattr({"Program": Program, "Function": Function}[home], method)
        )
        assert "rethrow(" in source


@pytest.mark.parametrize("name", sorted(UNIVERSE.all_passes))
def test_every_pass_of_other_tools_is_fenced(name):
    assert UNIVERSE.all_passes[name]().apply.__fenced__


def broken(*args, **named):
    return {}["nowhere"]


def test_a_bug_has_a_reproducer(crashes, monkeypatch):
    monkeypatch.setattr("irees.build.import_source", broken)
    with pytest.raises(InternalError, match="compile failed: KeyError: 'nowhere'") as info:
        irees.compile(TEXT, [np.zeros((3, 4), np.float16)], to="input", opt_level=1)
    text = Path(info.value.reproducer).read_text()
    for part in (
        TEXT,
        "opt_level: 1",
        "ndarray float16 (3, 4)",
        "KeyError",
        "python 3.",
        "xdsl 0.",
        "numpy 2",
    ):
        assert part in text, part
    assert Path(info.value.reproducer).parent == crashes
    assert isinstance(info.value.__cause__, KeyError)


def test_a_bug_in_a_call_has_a_reproducer(crashes, monkeypatch):
    program = irees.compile(TEXT)
    monkeypatch.setattr(program.functions["f"], "_readers", [broken])
    with pytest.raises(InternalError, match="f failed: KeyError") as info:
        program(np.zeros(3, np.float32))
    assert "ndarray float32 (3,)" in Path(info.value.reproducer).read_text()


def test_a_bug_in_a_pass_has_a_reproducer(crashes, monkeypatch):
    from irees.frontends.mlir import import_mlir
    from irees.transforms import load_pass

    monkeypatch.setattr(load_pass("irees-simplify-scf"), "apply", broken)
    with pytest.raises(InternalError, match="apply failed: KeyError") as info:
        UNIVERSE.all_passes["irees-simplify-scf"]()().apply(None, import_mlir(TEXT))
    assert "arith.addf" in Path(info.value.reproducer).read_text()


def test_a_full_disk_does_not_hide_the_bug(monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(InternalError, match="KeyError") as info:
        fenced(broken)()
    assert info.value.reproducer is None


def test_a_wrong_keyword_is_no_bug(crashes):
    with pytest.raises(ArgumentError, match=r"import_mlir.*unexpected keyword.*'target'"):
        irees.import_mlir("module {}", target="cpu")
    assert not list(crashes.glob("irees-crash*"))


def test_what_is_known_has_a_type_of_its_own():
    def raising(error):
        @fenced
        def entry():
            raise error

        return entry

    for error, kind in (
        (RecursionError(), LimitExceededError),
        (MemoryError(), OutOfMemoryError),
        (ValueError("x"), InternalError),
        (ParseError("x"), ParseError),
    ):
        with pytest.raises(kind):
            raising(error)()
    for error in (KeyboardInterrupt(), SystemExit(3), GeneratorExit()):
        with pytest.raises(type(error)):
            raising(error)()


def test_exceptions_of_xdsl_that_are_none_are_caught():
    """`ArgSpecParseError` is a BaseException."""
    from xdsl.utils.exceptions import ArgSpecParseError

    made = ArgSpecParseError.__new__(ArgSpecParseError)
    assert isinstance(as_irees_error("x", made), InternalError)


@pytest.mark.parametrize("name", ["before", "listener", "after"])
def test_what_the_caller_raises_is_the_callers(name):
    def raises(*_):
        raise LookupError("of the caller")

    with pytest.raises(LookupError, match="of the caller"):
        irees.compile(TEXT, **{name: raises})


def test_let_through_marks_what_passes():
    with pytest.raises(KeyError):
        fenced(let_through(broken))()


class Odd:
    """An argument whose every face raises."""

    @property
    def shape(self):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError


def test_any_argument_can_be_described(tmp_path):
    circle: list[object] = []
    circle.append(circle)
    (tmp_path / "x.mlir").write_text(TEXT)
    for value in (
        Odd(),
        circle,
        {"a": Odd()},
        b"\xff" * 999,
        "\ud800" * 999,
        tmp_path,
        None,
        5,
        Odd,
    ):
        assert isinstance(describe(value), str)
    assert "arith.addf" in describe(tmp_path / "x.mlir")
    assert len(describe(list(range(10**6)))) < 10**4


def test_reproducers_are_written_for_any_argument(crashes):
    with pytest.raises(InternalError) as info:
        fenced(broken)("\ud800" * 999, Odd(), x=Odd)
    assert Path(info.value.reproducer).read_text()


WRONG_SOURCES = [None, 5, 2.5, b"", b"module {}", bytearray(b"x"), Odd, int, [], {}, ()]


@pytest.mark.parametrize("source", WRONG_SOURCES)
@pytest.mark.parametrize("options", [{}, {"target": "reference"}, {"to": "input"}])
def test_what_is_no_program_is_an_argument_error(source, options):
    with pytest.raises(ArgumentError, match=r"the program is|ExportedProgram"):
        irees.compile(source, **options)


@pytest.mark.parametrize(
    "source", [None, 5, [], Odd, Odd(), object], ids=["None", "5", "[]", "Odd", "Odd()", "object"]
)
@pytest.mark.parametrize(
    "entry", ["import_mlir", "load", "import_torch", "import_onnx", "import_jax", "tune"]
)
def test_every_entry_refuses_what_is_no_program(entry, source):
    if entry in ("import_torch", "import_onnx", "import_jax"):
        pytest.importorskip(entry.removeprefix("import_"))
    with pytest.raises(IreesError) as info:
        getattr(irees, entry)(source, *([()] if entry == "tune" else []))
    assert not isinstance(info.value, InternalError), info.value


@pytest.mark.parametrize(
    "value",
    [None, 5, b"x", [], "[" * 99999, {"a": 5}, {5: []}, {"a": [[1]]}, object()],
    ids=lambda v: type(v).__name__,
)
@pytest.mark.parametrize(
    "name",
    [
        "target",
        "opt_level",
        "fp",
        "disable_pass",
        "rewrite_limit",
        "trace_dispatch_tensors",
        "time_dispatches",
        "tuning",
        "devices",
        "pipeline_stages",
        "pipeline_balance",
        "limits",
        "to",
        "start",
        "nothing",
    ],
)
def test_every_option_takes_any_value(name, value):
    try:
        irees.compile(TEXT, **{name: value})
    except InternalError as error:
        raise AssertionError(f"{name}={value!r}") from error
    except IreesError:
        pass


def test_fence_is_cheap():
    """Nothing is imported for it, and nothing written, unless something fails."""
    assert {name for name in vars(fence) if name in ("torch", "xdsl", "numpy")} == set()


@pytest.mark.parametrize(
    ("error", "kind"),
    [(MemoryError, OutOfMemoryError), (RecursionError, LimitExceededError)],
)
def test_a_pass_that_lacks_memory_or_stack(error, kind, monkeypatch):
    from irees.transforms import load_pass

    def fails(*_):
        raise error

    monkeypatch.setattr(load_pass("irees-convert-to-stream"), "apply", fails)
    with pytest.raises(kind):
        irees.compile(TEXT + f"// {kind}")


def test_what_a_phase_finds_has_a_reproducer(crashes, monkeypatch):
    from irees.transforms import load_pass

    monkeypatch.setattr(load_pass("irees-convert-to-stream"), "apply", broken)
    with pytest.raises(InternalError, match="please report it with the file") as info:
        irees.compile(TEXT + "// phase")
    assert "arith.addf" in Path(info.value.reproducer).read_text()
