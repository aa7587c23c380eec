"""Options and targets: what may be chosen, and the words when it may not."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import fields
from typing import get_type_hints

import pytest

from irees import target
from irees.errors import ArgumentError, DeviceError
from irees.options import Keywords, Options
from irees.target import Target, cpu_target, default_threads
from irees.tools.common import add_options


def test_defaults_and_names():
    assert Options.make() == Options()
    assert Options.make(fp="strict").fp == "strict"
    with pytest.raises(ArgumentError, match="option 'optimise' is unknown; use target, "):
        Options.make(optimise=1)


@pytest.mark.parametrize(
    "wrong",
    [{"opt_level": 4}, {"opt_level": "2"}, {"fp": "fast"}, {"target": 3}, {"allow_tf32": "no"}],
)
def test_values(wrong):
    with pytest.raises(ArgumentError, match=f"{next(iter(wrong))} is "):
        Options.make(**wrong)


def test_strict_programs_have_no_tf32():
    with pytest.raises(ArgumentError, match="allow_tf32 and fp=strict exclude each other"):
        Options.make(allow_tf32=True, fp="strict")
    assert not Options.make().allow_tf32


def test_targets():
    host = Target.parse("cpu")
    assert host is Target.parse(host)
    assert host.arch == "native"
    assert host.vector_bytes in (16, 32, 64)
    assert host.missing_features() == ()
    assert Target.parse("cpu:generic").c_flags == ()
    assert hash(host) != hash(Target.parse("cpu:generic"))
    for wrong in ("", "tpu", "cpu:z80"):
        with pytest.raises(ArgumentError):
            Target.parse(wrong)


def test_targets_of_gpus():
    made = Target("cuda", arch="sm_90")
    assert made == Target.parse("cuda:sm_90")
    assert made.gpu is not None
    assert made.gpu.shared_opt_in_bytes == 227 << 10
    assert made.c_flags == ()
    assert "tf32" not in Target.parse("cuda-emulated:sm_75").gpu.matrix_kinds
    assert Target.parse("cuda-emulated").arch == "sm_80"
    with pytest.raises(ArgumentError, match="sm_12"):
        Target.parse("cuda:sm_12")


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match=r"name an architecture \(cuda:sm_80\)"):
        Target.parse("cuda")


@pytest.mark.skipif(target.host_machine() != "x86_64", reason="levels of x86-64")
def test_levels_of_x86():
    assert cpu_target("x86-64-v2").vector_bytes == 16
    assert cpu_target("x86-64-v3").vector_bytes == 32
    assert cpu_target("x86-64-v4").vector_bytes == 64
    assert cpu_target("x86-64-v4").vector_registers == 32
    assert cpu_target("x86-64-v3").c_flags == ("-march=x86-64-v3",)
    assert Target(features=("no_such",)).missing_features() == ("no_such",)
    assert Target(machine="vax").missing_features() == ("vax",)


def test_threads(monkeypatch):
    monkeypatch.delenv("IREES_NUM_THREADS", raising=False)
    assert 1 <= default_threads() <= (os.cpu_count() or 1)
    monkeypatch.setenv("IREES_NUM_THREADS", "3")
    assert default_threads() == 3
    for wrong in ("0", "-1", "many", "1025", "9" * 30, "²"):
        monkeypatch.setenv("IREES_NUM_THREADS", wrong)
        with pytest.raises(ArgumentError, match="IREES_NUM_THREADS is"):
            default_threads()


def test_editors_know_every_option():
    hints = get_type_hints(Keywords)
    assert list(hints) == [each.name for each in fields(Options)]


def test_every_option_has_a_flag_with_help():
    parser = argparse.ArgumentParser()
    add_options(parser)
    flags = {each.dest: each for each in parser._actions if each.dest != "help"}
    assert set(flags) == {each.name for each in fields(Options)}
    assert all(each.help for each in parser._actions)


@pytest.mark.parametrize("name", ["plugins", "disable_pass"])
@pytest.mark.parametrize("value", [3, "acme", [3], {"acme": 1}])
def test_names_are_sequences(name, value):
    with pytest.raises(ArgumentError, match=f"{name} is .*, but must be a sequence of names"):
        Options.make(**{name: value})


def test_names_that_are_nearly_right():
    with pytest.raises(ArgumentError, match="option 'opt_lvl' is unknown; use opt_level"):
        Options.make(opt_lvl=1)
