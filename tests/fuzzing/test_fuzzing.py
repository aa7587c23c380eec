"""Mutated texts: none escapes, and the fuzzer sees what it looks for."""

from __future__ import annotations

import json
import mmap
import os
import signal
import time

import pytest

from tests.fuzzing import corpus, outcomes
from tests.fuzzing.mutate import Mutator
from tests.fuzzing.outcomes import CPU, outcome, target_of
from tests.fuzzing.run import State, fuzz, replay, store, summary
from tests.fuzzing.tokens import tokenize
from tests.fuzzing.worker import Limits, Worker

TEXTS = 1000
"""Texts of a pull request: about a minute on one core."""

GOOD = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"


@pytest.fixture(scope="module")
def mutator():
    return Mutator(corpus.load())


def test_no_text_escapes(mutator):
    """A fault is shown by `python -m tests.fuzzing.run --show NUMBER`."""
    state = State()
    fuzz(mutator, state, TEXTS, Limits())
    assert not state.faults(), summary(state)
    assert sum(state.counts.values()) == TEXTS
    # Texts reach the parser, the verifiers and the passes.
    assert state.counts["ok"] > TEXTS / 50
    assert state.refusals["VerifyError"] > TEXTS / 50
    assert state.refusals["ParseError"] < TEXTS * 0.9


def test_texts_depend_on_their_number_alone(mutator):
    numbers = [0, 7, 4711, 123_456_789]
    texts = [mutator.text(number) for number in numbers]
    assert [mutator.text(number) for number in reversed(numbers)] == texts[::-1]
    assert Mutator(corpus.load()).text(4711) == texts[2]


def test_the_corpus_has_all_sources(mutator):
    early = "".join(mutator.corpus.early)
    assert len(mutator.corpus.early) > 500
    assert "@main(%0: tensor<" in early  # of torch.export
    assert "iree_linalg_ext.sort" in early
    assert any("memref." in text for text in mutator.corpus.late)


def test_tokens_are_the_text(mutator):
    for text in mutator.corpus.early[::20]:
        assert "".join(token.text for token in tokenize(text)) == text


# --- the worker sees each kind of fault -----------------------------------------------------


PLANTED = {
    "hang": lambda: time.sleep(600),
    "signal": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "raw": lambda: 1 // 0,
    "memory": lambda: bytearray(64 << 30),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_fault_is_seen_and_the_run_goes_on(kind, monkeypatch):
    real = outcomes.irees.compile

    def planted(text: str, **options: object) -> object:
        if "planted" in text:
            PLANTED[kind]()
        return real(text, **options)

    limits = Limits(seconds=1, patience=3)
    worker = Worker(lambda n: (GOOD.replace("@f", "@planted" if n == 2 else "@f"), CPU), limits)
    monkeypatch.setattr(outcomes.irees, "compile", planted)
    found = dict(worker.outcomes(range(4)))
    kinds = [found[number].kind for number in range(4)]
    assert kinds == ["ok", "ok", kind, "ok"]
    assert found[2].signature or kind == "hang"


def test_what_was_mapped_before_the_fork_is_not_counted():
    with mmap.mmap(-1, 8 << 30):
        ((_, found),) = Worker(lambda n: (GOOD, CPU), Limits()).outcomes(range(1))
    assert found.kind == "ok"


def test_a_loop_is_a_hang_with_its_place(monkeypatch):
    def endless(*_: object) -> None:
        while True:
            pass

    worker = Worker(lambda n: (GOOD, CPU), Limits(seconds=1, patience=30))
    monkeypatch.setattr("irees.transforms.input.inline_calls.bottom_up", endless)
    ((_, found),) = worker.outcomes(range(1))
    assert found.kind == "hang"
    assert "inline_calls.py" in found.signature


def test_a_text_of_a_bug_is_internal(monkeypatch):
    def broken(*_: object) -> None:
        raise IndexError("planted")

    monkeypatch.setattr("irees.transforms.input.inline_calls.bottom_up", broken)
    made = outcome(GOOD, CPU)
    assert made.kind == "internal"
    assert made.signature.startswith("IndexError irees-inline-calls ")


# --- the state ------------------------------------------------------------------------------


def test_a_run_goes_on_where_the_last_one_stopped(mutator, tmp_path):
    path = tmp_path / "fuzz.json"
    for _ in range(2):
        state = State.read(path, 100)
        fuzz(mutator, state, 15, Limits(), path=path, folder=tmp_path / "faults")
    state = State.read(path, 0)
    assert state.next == 130
    assert sum(state.counts.values()) == 30
    assert [run["first"] for run in state.runs] == [100, 115]
    assert json.loads(path.read_text())["next"] == 130


def test_two_workers_find_what_one_finds(mutator):
    one, two = State(next=50), State(next=50)
    fuzz(mutator, one, 40, Limits())
    fuzz(mutator, two, 40, Limits(), workers=2)
    assert one.counts == two.counts
    assert one.next == two.next


def test_faults_are_kept_once_and_replayed(tmp_path, capsys):
    made = outcomes.Outcome("raw", "ZeroDivisionError here", "division by zero", 0.1)
    state = State()
    assert [state.add(number, made) for number in (3, 9)] == [True, False]
    assert state.faults()["ZeroDivisionError here"]["count"] == 2
    store(tmp_path, GOOD, 3, made)
    (path,) = tmp_path.iterdir()
    assert f"text 3 for {target_of(3)}" in path.read_text()
    assert replay([path], Limits()) == 0
    assert "ok" in capsys.readouterr().out
