"""
The options of a compilation: one frozen dataclass, the same names in Python and on the
command line. Nothing else configures the compiler.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Literal, TypedDict, get_args

from irees.errors import ArgumentError
from irees.insertion import Insertion, canonical_insertions
from irees.limits import canonical_limits
from irees.plugins import are_names
from irees.target import Target

FloatMode = Literal["default", "strict"]
Balance = Literal["flops", "memory"]


def canonical_tuning(tuning: Any) -> str | None:
    """Returns a tuning (a mapping or JSON) as sorted JSON; None if it is empty."""
    data: Any = None
    try:
        data = json.loads(tuning) if isinstance(tuning, str) else dict(tuning or {})
    except (TypeError, ValueError, RecursionError):
        pass
    if not _is_tuning(data):
        raise ArgumentError(
            "tuning must map keys of dispatches to lists of lowering configs",
            hint='use a result of irees.tune, as in {"1f0c...": [{"workgroup": [64, 0]}]}',
        )
    return json.dumps(data, sort_keys=True) if data else None


def _is_tuning(value: Any) -> bool:
    return type(value) is dict and all(
        type(configs) is list and all(map(_is_config, configs)) for configs in value.values()
    )


def _is_config(value: Any) -> bool:
    return (
        type(value) is dict
        and value.keys() <= {"workgroup", "block"}
        and all(type(sizes) is list and all(map(_is_size, sizes)) for sizes in value.values())
    )


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


def canonical_devices(devices: Any) -> str | None:
    """Returns the devices (a mapping or JSON) as JSON, in the given order; None if empty."""
    data: Any = None
    try:
        data = json.loads(devices) if isinstance(devices, str) else dict(devices or {})
    except (TypeError, ValueError, RecursionError):
        pass
    if type(data) is not dict or not all(
        isinstance(text, str) and text for pair in data.items() for text in pair
    ):
        raise ArgumentError(
            "devices must map the names of a program's devices to devices",
            hint='as in {"dev_0": "cpu:0", "dev_1": "cuda:0"}',
        )
    return json.dumps(data) if data else None


class Keywords(TypedDict, total=False):
    """The options as keywords, for editors and type checkers."""

    target: str | Target
    opt_level: int
    fp: FloatMode
    allow_tf32: bool
    disable_pass: Sequence[str]
    rewrite_limit: int | None
    trace_dispatch_tensors: bool | str
    time_dispatches: bool
    tuning: str | Mapping[str, Any] | None
    devices: str | Mapping[str, str] | None
    pipeline_stages: int | None
    pipeline_balance: Balance
    annotate_input_affinities: bool
    limits: str | Mapping[str, int] | None
    passes: Mapping[str, Any]
    plugins: Sequence[str] | None


def _option(default: Any, text: str, **flag: str) -> Any:
    """A field with its help text; `flag` has the spelling and metavar of its flag, if special."""
    return field(default=default, metadata={"help": text, **flag})


@dataclass(frozen=True)
class Options:
    """
    The options of a compilation: the keywords of `irees.compile` and, with dashes, the flags of the
    commands. docs/options.md is generated from the help texts.

    Raises ArgumentError for an invalid value.
    """

    target: str | Target = _option(
        "cpu",
        "target: cpu, cpu:x86-64-v3, cuda, cuda:sm_90, cuda-emulated, or reference, which "
        "interprets the program",
    )
    opt_level: int = _option(2, "optimization level of the C compiler, 0 to 3", metavar="N")
    fp: FloatMode = _option(
        "default",
        "strict forbids contraction and reassociation of floats: results are bit-identical to the "
        "interpreter's",
    )
    allow_tf32: bool = _option(
        False,
        "let a GPU round the operands of f32 matmuls to tf32, as PyTorch's allow_tf32 does",
    )
    disable_pass: tuple[str, ...] = _option(
        (), "disable optional or inserted passes, separated by commas", metavar="NAME"
    )
    rewrite_limit: int | None = _option(
        None, "apply only the first N optional rewrites, to bisect a miscompilation", metavar="N"
    )
    trace_dispatch_tensors: bool | str = _option(
        False,
        "trace the inputs and outputs of each dispatch, to standard error or as .npy files in a "
        "folder",
        metavar="[DIR]",
    )
    time_dispatches: bool = _option(
        False, "record the start and end time of each dispatch, for `explain`"
    )
    tuning: str | Mapping[str, Any] | None = _option(
        None,
        "lowering configs by dispatch, from `irees.tune`: a saved program or JSON",
        metavar="FILE",
    )
    devices: str | Mapping[str, str] | None = _option(
        None,
        "the devices of the program, the default first, as in dev_0=cpu:0",
        flag="--device",
        metavar="NAME=DEVICE",
    )
    pipeline_stages: int | None = _option(
        None,
        "partition a program without annotations into N stages, for devices dev_0, dev_1, ...",
        metavar="N",
    )
    pipeline_balance: Balance = _option("flops", "the quantity by which stages are balanced")
    annotate_input_affinities: bool = _option(
        False, "annotate ops with the devices that the analysis inferred, for printed IR"
    )
    limits: str | Mapping[str, int] | None = _option(
        None,
        "override a limit of docs/limits.md, as in ops=10000000",
        flag="--limit",
        metavar="NAME=N",
    )
    passes: Mapping[str, Any] | tuple[Insertion, ...] = _option(
        (),
        "insert passes at a place listed in docs/plugins.md, as in after:structured=acme-x{n=2}",
        flag="--insert",
        metavar="PLACE=PASSES",
    )
    plugins: tuple[str, ...] | None = _option(
        None, "use only these plug-ins, separated by commas; by default all", metavar="NAME"
    )

    def __post_init__(self):
        if not isinstance(self.target, str | Target):
            raise ArgumentError(f"target is {self.target!r}, but must be a name or a Target")
        if self.opt_level not in range(4):
            raise ArgumentError(f"opt_level is {self.opt_level!r}, but must be 0, 1, 2 or 3")
        if self.fp not in get_args(FloatMode):
            raise ArgumentError(f"fp is {self.fp!r}, but must be default or strict")
        if type(self.allow_tf32) is not bool:
            raise ArgumentError(f"allow_tf32 is {self.allow_tf32!r}, but must be a bool")
        if self.allow_tf32 and self.fp == "strict":
            raise ArgumentError(
                "allow_tf32 and fp=strict exclude each other",
                hint="fp=strict promises the bits of f32",
            )
        names = self.disable_pass
        if not are_names(names):
            raise ArgumentError(f"disable_pass is {names!r}, but must be a sequence of names")
        self._check_tracing()
        limit = self.rewrite_limit
        if limit is not None and (not isinstance(limit, int) or limit < 0):
            raise ArgumentError(
                f"rewrite_limit is {limit!r}, but must be 0 or more",
                hint="0 disables every optional rewrite, None sets no limit",
            )
        object.__setattr__(self, "disable_pass", tuple(sorted(set(names))))
        object.__setattr__(self, "tuning", canonical_tuning(self.tuning))
        object.__setattr__(self, "limits", canonical_limits(self.limits))
        object.__setattr__(self, "passes", canonical_insertions(self.passes))
        self._check_plugins()
        self._check_stages()
        object.__setattr__(self, "devices", canonical_devices(self.devices))

    def _check_tracing(self) -> None:
        folder = self.trace_dispatch_tensors
        if not isinstance(folder, bool | str) or folder == "":
            raise ArgumentError(
                f"trace_dispatch_tensors is {folder!r}, but must be True, False or a folder"
            )
        if not isinstance(self.time_dispatches, bool):
            raise ArgumentError(f"time_dispatches is {self.time_dispatches!r}, but must be a bool")
        if self.time_dispatches and (folder or self.target == "reference"):
            other = "trace_dispatch_tensors" if folder else "target=reference"
            raise ArgumentError(
                f"time_dispatches and {other} exclude each other",
                hint="compile the program twice",
            )

    def _check_plugins(self) -> None:
        names = self.plugins
        if names is None:
            return
        if not are_names(names):
            raise ArgumentError(f"plugins is {names!r}, but must be a sequence of names")
        object.__setattr__(self, "plugins", tuple(sorted(set(names))))

    def _check_stages(self) -> None:
        if self.pipeline_balance not in get_args(Balance):
            raise ArgumentError(
                f"pipeline_balance is {self.pipeline_balance!r}, but must be flops or memory"
            )
        stages = self.pipeline_stages
        if stages is None:
            return
        given = json.loads(canonical_devices(self.devices) or "{}")
        if given and isinstance(stages, int) and len(given) < stages:
            raise ArgumentError(
                f"pipeline_stages is {stages}, but there are {len(given)} devices",
                hint="name one for each stage",
            )
        if isinstance(stages, bool) or not isinstance(stages, int) or not 1 <= stages <= 1024:
            raise ArgumentError(f"pipeline_stages is {stages!r}, but must be from 1 to 1024")
        if not self.devices:
            object.__setattr__(self, "devices", {f"dev_{i}": f"cpu:{i}" for i in range(stages)})

    def device_specs(self) -> dict[str, str]:
        """The devices of the program in order: name => device spec; empty for a single device."""
        return json.loads(str(self.devices)) if self.devices else {}

    def limit_overrides(self) -> dict[str, int]:
        """The limits that differ from the defaults, by name."""
        return json.loads(str(self.limits)) if self.limits else {}

    def keywords(self) -> dict[str, Any]:
        """The options by name, as `irees.compile` takes them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @staticmethod
    def make(**options: Any) -> Options:
        """Returns the options with these values. Raises ArgumentError for a bad name or value."""
        known = [field.name for field in fields(Options)]
        for name in options:
            if name not in known:
                near = get_close_matches(name, known, 3) or known
                raise ArgumentError(f"option {name!r} is unknown", hint=f"use {', '.join(near)}")
        return Options(**options)
