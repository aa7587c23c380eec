"""
Mutated text number N, which depends on N and on the corpus alone.

A text of the corpus gets one to five edits. Most are of its grammar, which reach far into the
compiler; edits of tokens and bytes reach the parser and the verifiers.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random

from tests.fuzzing.corpus import Corpus
from tests.fuzzing.grammar import EDITS, ops_of
from tests.fuzzing.tokens import ELEMENTS, HOSTILE, MARKS, Token, tokenize, vocabulary

LATE_SHARE = 0.12
"""Share of texts that are of later phases, which the input phase refuses."""
MANY_EDITS = (1, 1, 1, 1, 1, 1, 1, 2, 2, 3)
"""Counts of edits, one of which is drawn."""
BYTES = "\0\t\n\v\r \"'\\/%@#!^(){}[]<>,:=-?x*+&|~`$;0123456789abfnrt_.é\u2028\ufeff"
"""Characters that edits of bytes insert."""
MAX_LENGTH = 12000
RARE = 80
"""Number of texts with an op up to which it says what a text is about."""


class Mutator:
    """Makes mutated texts from a corpus."""

    def __init__(self, corpus: Corpus):
        self.corpus = corpus
        self.words = vocabulary([*corpus.early, *corpus.late])
        self.ops = {text: ops_of(text) for text in (*corpus.early, *corpus.late)}
        self.users: defaultdict[str, list[str]] = defaultdict(list)
        for text, ops in self.ops.items():
            for op in ops:
                self.users[op].append(text)

    def text(self, number: int) -> str:
        """Mutated text number `number`."""
        rng = Random(number)
        late = bool(self.corpus.late) and rng.random() < LATE_SHARE
        texts = self.corpus.late if late else self.corpus.early
        start = text = rng.choice(texts)
        level = rng.random()
        for _ in range(rng.choice(MANY_EDITS)):
            if level < 0.6:
                text = self._grammar(rng, text, self._donor(rng, start, texts))
            elif level < 0.88:
                text = self._tokens(rng, text)
            elif level < 0.96:
                text = _bytes(rng, text)
            else:
                edits = (lambda t: _bytes(rng, t), lambda t: self._tokens(rng, t),
                         lambda t: self._grammar(rng, t, rng.choice(texts)))  # fmt: skip
                text = rng.choice(edits)(text)
        return text[:MAX_LENGTH]

    def _donor(self, rng: Random, text: str, texts: list[str]) -> str:
        """Another text, mostly one with an op of this one."""
        rare = [op for op in self.ops[text] if 1 < len(self.users[op]) <= RARE]
        if rare and rng.random() < 0.7:
            return rng.choice(self.users[rng.choice(rare)])
        return rng.choice(texts)

    @staticmethod
    def _grammar(rng: Random, text: str, donor: str) -> str:
        for _ in range(4):
            changed = rng.choice(EDITS)(rng, text, donor)
            if changed is not None and changed != text:
                return changed
        return text

    def _tokens(self, rng: Random, text: str) -> str:
        tokens = tokenize(text)
        places = [i for i, token in enumerate(tokens) if token.kind != "blank"]
        if not places:
            return text
        numbers = [i for i in places if tokens[i].kind == "number"]
        at = rng.choice(numbers) if numbers and rng.random() < 0.3 else rng.choice(places)
        new = [token.text for token in tokens]
        kind = rng.randrange(8)
        if kind == 0:
            del new[at : at + rng.choice((1, 1, 2, 5))]
        elif kind == 1:
            new.insert(at, new[at])
        elif kind == 2:
            other = rng.choice(places)
            new[at], new[other] = new[other], new[at]
        elif kind == 3:
            new.insert(at, rng.choice((" ", "")) + rng.choice(self.words[tokens[at].kind]) + " ")
        else:
            new[at] = self._other(rng, tokens, places, at)
        return "".join(new)

    def _other(self, rng: Random, tokens: list[Token], places: list[int], at: int) -> str:
        """A token for the place of another one."""
        token = tokens[at]
        if token.kind == "number" and rng.random() < 0.7:
            return rng.choice(HOSTILE)
        if token.kind == "element" and rng.random() < 0.6:
            return rng.choice(ELEMENTS)
        if token.kind == "mark" and rng.random() < 0.8:
            return rng.choice(MARKS)
        near = [tokens[i].text for i in places if tokens[i].kind == token.kind]
        if rng.random() < 0.6:
            return rng.choice(near)
        if rng.random() < 0.8:
            return rng.choice(self.words[token.kind])
        return rng.choice(self.words[rng.choice(list(self.words))])


def _bytes(rng: Random, text: str) -> str:
    at, kind = rng.randrange(len(text) + 1), rng.randrange(5)
    end = min(len(text), at + rng.choice((1, 1, 2, 8, 40)))
    if kind == 0:
        return text[:at] + text[end:]
    if kind == 1:
        return text[:at] + rng.choice(BYTES) * rng.choice((1, 1, 2, 70)) + text[at:]
    if kind == 2:
        return text[:at] + rng.choice(BYTES) + text[at + 1 :]
    if kind == 3:
        return text[:end] + text[at:end] * rng.choice((1, 2, 30)) + text[end:]
    return text[:at]
