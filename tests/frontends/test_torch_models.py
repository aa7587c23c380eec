"""Classes of failures that whole models showed: caches, nested results, routers."""

from __future__ import annotations

import dataclasses
import importlib
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

import irees  # noqa: E402
from irees.errors import ArgumentError, RuntimeTrap, UnsupportedError  # noqa: E402

SMALL = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 64, "num_key_value_heads": 1, "pad_token_id": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers", reason="needs transformers")


def run(model, **kwargs):
    """The program, its result and eager's."""
    program = irees.compile(model.eval(), (), kwargs=kwargs)
    with torch.no_grad():
        return program, program(**kwargs), model(**kwargs)


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_sliding_window_cache_comes_back_and_continues(transformers):
    config = transformers.MistralConfig(**SMALL, head_dim=8, sliding_window=4)
    model = transformers.MistralForCausalLM(config)
    ids = torch.randint(1, 64, (1, 6))
    _, got, want = run(model, input_ids=ids)
    mine, theirs = got.past_key_values, want.past_key_values
    assert type(mine) is type(theirs)
    assert [type(layer) for layer in mine.layers] == [type(layer) for layer in theirs.layers]
    assert mine.layers[0].cumulative_length == theirs.layers[0].cumulative_length == 6
    close(mine.layers[1].keys, theirs.layers[1].keys)
    # Eager goes on with the cache that the program made.
    with torch.no_grad():
        a = model(input_ids=ids[:, :1], past_key_values=mine).logits
        b = model(input_ids=ids[:, :1], past_key_values=theirs).logits
    close(a, b)


def test_numbers_of_a_cache_are_constants_and_checked(transformers):
    config = transformers.MistralConfig(**SMALL, head_dim=8, sliding_window=4)
    model = transformers.MistralForCausalLM(config).eval()
    ids = torch.randint(1, 64, (1, 6))
    with torch.no_grad():
        cache = model(input_ids=ids).past_key_values
    arguments = {"input_ids": ids[:, :1], "past_key_values": cache}
    program = irees.compile(model, (), kwargs=arguments)
    cache.layers[0].cumulative_length += 1
    with pytest.raises(ArgumentError, match="cumulative_length is 7, not 6"):
        program(**arguments)


def test_states_of_linear_attention_are_results(transformers):
    config = transformers.MambaConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=2, state_size=4, pad_token_id=0
    )
    _, got, want = run(
        transformers.MambaForCausalLM(config), input_ids=torch.randint(1, 64, (1, 5))
    )
    close(got.logits, want.logits)
    mine, theirs = (r.get("cache_params", r.get("cache")) for r in (got, want))
    assert type(mine) is type(theirs)
    for a, b in zip(mine.layers, theirs.layers, strict=True):
        assert type(a) is type(b)
        close(a.conv_states[0], b.conv_states[0])
        close(a.recurrent_states[0], b.recurrent_states[0])


def test_a_pair_of_caches_is_a_result(transformers):
    config = transformers.BartConfig(
        vocab_size=64, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
        max_position_embeddings=32,
    )  # fmt: skip
    ids = torch.randint(3, 64, (1, 5))
    _, got, want = run(
        transformers.BartForConditionalGeneration(config), input_ids=ids, decoder_input_ids=ids
    )
    mine, theirs = got.past_key_values, want.past_key_values
    assert type(mine) is type(theirs)
    assert mine.is_updated == theirs.is_updated
    close(mine.cross_attention_cache.layers[0].keys, theirs.cross_attention_cache.layers[0].keys)


def test_programs_with_caches_are_saved(transformers, tmp_path):
    config = transformers.MistralConfig(**SMALL, head_dim=8, sliding_window=4)
    ids = torch.randint(1, 64, (1, 6))
    program, got, _ = run(transformers.MistralForCausalLM(config), input_ids=ids)
    program.save(tmp_path / "program")
    again = irees.load(tmp_path / "program")(input_ids=ids)
    close(again.past_key_values.layers[0].values, got.past_key_values.layers[0].values)


class Decides(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        for _ in range(int(x.abs().max())):
            x = x + 1
        if not (x > -100).all():
            raise ValueError("too small")
        return x


def test_decisions_of_a_library_are_those_of_the_example_and_checked(capfd, monkeypatch):
    from irees.frontends.torch import exporting

    x = torch.tensor([0.5, 1.0])
    with pytest.raises(UnsupportedError, match=r"test_torch_models.*torch\.export.*data-dependent"):
        irees.compile(Decides(), (x,))
    monkeypatch.setattr(exporting, "is_installed", lambda file: True)
    model = Decides()
    program = irees.compile(model, (x,))
    close(program(x), model(x))
    close(program(x * 0.9 + 0.1), model(x * 0.9 + 0.1))
    with pytest.raises(RuntimeTrap, match="reads True from the example inputs"):
        program(-x)
    assert "forward(self" not in "".join(capfd.readouterr())


@dataclasses.dataclass
class Padded:
    values: torch.Tensor


class Pads(torch.nn.Module):
    """Reads sizes, and returns an object for whose class the export is tried again."""

    def forward(self, x, lengths):
        longest = lengths.max()
        rows = [x[:1].expand(int(longest), 2), x.new_zeros((longest, 2))]
        padded = torch.zeros(2, longest, 2)
        for i, row in enumerate(rows):
            padded[i] = row
        wide = torch.nn.functional.pad(padded, (0, 4 - longest))
        if wide.size(2) - longest < 0:
            wide = wide * 2
        return Padded(wide)


def test_sizes_that_a_library_reads_are_those_of_the_example_and_checked(monkeypatch):
    from irees.frontends.torch import exporting

    monkeypatch.setattr(exporting, "is_installed", lambda file: True)
    model, x = Pads(), torch.tensor([[0.5, 1.0]])
    program = irees.compile(model, (x, torch.tensor([2, 3])))
    for lengths in ([2, 3], [3, 1]):
        close(program(x, torch.tensor(lengths)).values, model(x, torch.tensor(lengths)).values)
    with pytest.raises(RuntimeTrap, match="reads 3 from the example inputs"):
        program(x, torch.tensor([1, 2]))


def test_a_library_may_ask_whether_a_size_is_zero(monkeypatch):
    from irees.frontends.torch import exporting

    def positive(x):
        places = torch.where(x > 0)[0]
        if places.numel() == 0:
            return x.sum()
        return x[places] * 2

    x = torch.tensor([-1.0, 2.0, 3.0])
    with pytest.raises(UnsupportedError, match=r"torch\.export.*data-dependent"):
        irees.compile(positive, (x,))
    monkeypatch.setattr(exporting, "is_installed", lambda file: True)
    program = irees.compile(positive, (x,))
    for each in (x, -x):
        close(program(each), positive(each))
    with pytest.raises(RuntimeTrap, match="Runtime assertion failed"):
        program(-x.abs())


def test_a_size_that_the_user_reads_is_not_replayed():
    def pads(x, length):
        return torch.zeros(length, 2) if length > 1 else x

    with pytest.raises(UnsupportedError, match=r"torch\.export.*data-dependent"):
        irees.compile(pads, (torch.ones(1, 2), torch.tensor(3)))


def test_torch_compile_takes_other_decisions():
    model = Decides()
    compiled = torch.compile(model, backend="irees")
    for x in (torch.tensor([0.5, 1.0]), torch.tensor([-3.0, 1.0])):
        close(compiled(x), model(x))


class Memory:
    def __init__(self, steps, states):
        self.steps, self.states = steps, states


class Remembers(torch.nn.Module):
    def forward(self, x):
        return Memory(2, {0: x + 1, 1: [x * 2]})


def test_objects_of_plain_classes_are_results():
    x = torch.randn(3)
    got = irees.compile(Remembers(), (x,))(x)
    assert type(got) is Memory
    assert got.steps == 2
    close(got.states[0], x + 1)
    close(got.states[1][0], x * 2)


def test_a_graph_that_fails_in_its_first_call_runs_in_pytorch(monkeypatch):
    importlib.import_module("irees.dynamo.backend")

    def fails(*_):
        raise RuntimeError("a defect")

    monkeypatch.setattr(sys.modules["irees.dynamo.backend"], "compile_graph", fails)
    model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    with torch.no_grad():
        close(torch.compile(model, backend="irees")(x), model(x))


def test_sizes_that_are_expressions_of_symbols_are_arguments():
    def forward(x, n):
        parts = x.split(n, 0)  # sizes that the program reads after a graph break
        return [part * 2 for part in parts]

    def broken(x, counts):
        return forward(x, counts.tolist())

    compiled = torch.compile(broken, backend="irees")
    for counts in ([1, 2, 3], [2, 2, 2], [3, 1, 2]):
        x = torch.randn(6, 4)
        for a, b in zip(compiled(x, torch.tensor(counts)), x.split(counts), strict=True):
            close(a, b * 2)


def test_results_with_expanded_dims_have_their_strides():
    def forward(x):
        return (x * 2)[:, None].expand(-1, 4, -1), (x + 1).sum()

    x = torch.randn(3, 5)
    got, want = torch.compile(forward, backend="irees")(x), forward(x)
    close(got[0], want[0])
    assert got[0].stride() == want[0].stride()


def test_distributions_check_their_arguments():
    class Likelihood(torch.nn.Module):
        def forward(self, x):
            return torch.distributions.Normal(0.0, 1.0).log_prob(x).sum()

    x = torch.randn(4)
    close(irees.compile(Likelihood(), (x,))(x), Likelihood()(x))


def test_places_of_triangles_are_lowered_in_graphs():
    def forward(x):
        return x[tuple(torch.tril_indices(4, 4, -1))], torch.triu_indices(3, 5, 1)

    x = torch.randn(4, 4)
    options = {"fallback": False}
    for a, b in zip(torch.compile(forward, backend="irees", options=options)(x), forward(x)):
        close(a, b)
