"""
What shows that the accesses of a kernel are inside of their buffers, as data.

A certificate is JSON: for each dispatch the accesses in the order of the kernel, and the goals
that they need with their proofs, each once. Polynomials are texts over variables `v<number>`; a
proof is

    "low"                                   by the intervals of the variables
    ["use", v, fact, factor, multiple, p]   factor * goal + (factor - 1) - multiple * fact, then p;
                                            one more proof says that the factor is at least 1
    ["cases", v, [p, ...]]                  for each value that v may be
    ["choice", v, [p, ...]]                 the same, with all that v defines
    ["never", fact, p]                      p shows that what the case would have does not hold;
                                            with "0", each p shows what another case needs
    ["more", number, p]                     p shows it of the goal less a number

What the variables are, and what is known of them, is listed for those that occur.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from irees.analysis.accesses.host import Program, Site
from irees.analysis.accesses.polynomials import Polynomial
from irees.analysis.accesses.prover import Step
from irees.analysis.accesses.walk import Access

KINDS = ("proved", "guarded")
TOGETHER = "together"
"""Accesses that are not shown to be apart from those of other iterations of a parallel loop."""


def name(number: int) -> str:
    """A variable, as certificates write it."""
    return f"v{number}"


def text(polynomial: Polynomial) -> str:
    """A polynomial, as certificates write it."""
    return polynomial.text(name).replace(" ", "")


def proof(step: Step) -> Any:
    """A proof as JSON."""
    if step.kind == "low":
        return "low"
    inner = [proof(then) for then in step.then]
    if step.kind == "use":
        factors = [text(step.factor), text(step.multiple)]
        return ["use", step.variable, text(step.fact), *factors, *inner]
    if step.kind == "never":
        return ["never", text(step.fact), *inner]
    if step.kind == "more":
        return ["more", text(step.fact), inner[0]]
    return [step.kind, step.variable, inner]


def kind_of(access: Access) -> str:
    """How an access is kept inside: `proved`, or `guarded` by a condition in front of it."""
    return "guarded" if "guarded" in access.op.attributes else "proved"


def counts(sites: list[Site]) -> dict[str, int]:
    """How many accesses of a kernel are kept inside in which way, over its dispatches."""
    accesses = [access for site in sites for access in site.accesses]
    found = Counter(map(kind_of, accesses))
    return {kind: found[kind] for kind in KINDS} | {TOGETHER: sum(not a.apart for a in accesses)}


def sites_of(program: Program, executable: str) -> list[Site]:
    """The dispatches of an executable."""
    return [site for site in program.sites if site.kernel.partition(".")[0] == executable]


def certificate(program: Program, sites: list[Site]) -> str:
    """The certificate of an executable that is dispatched at these sites."""
    return json.dumps([_site(program, site) for site in sites], separators=(",", ":"))


def _site(program: Program, site: Site) -> dict[str, Any]:
    goals: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    accesses = []
    for access in site.accesses:
        needed = []
        for shown in access.shown or ():
            for goal, step in zip(shown.goals, shown.proofs, strict=True):
                key = text(goal)
                if key not in numbers:
                    numbers[key] = len(numbers)
                    goals[key] = proof(step)
                needed.append(numbers[key])
        said = kind_of(access) if access.apart else f"{kind_of(access)}, {TOGETHER}"
        accesses.append([access.op.name, said, needed])
    return {
        "accesses": accesses,
        "goals": list(goals.items()),
        "variables": _variables(program, goals),
    }


def _variables(program: Program, goals: dict[str, Any]) -> dict[str, list[Any]]:
    """Per variable that occurs: a name, its limits, its facts, and what it is one of."""
    waiting = [int(part) for part in re.findall(r"v(\d+)", json.dumps(list(goals.items())))]
    waiting += [step for step in _eliminated(list(goals.values()))]
    found: dict[int, list[Any]] = {}
    while waiting:
        number = waiting.pop()
        if number in found:
            continue
        variable = program.space.variables[number]
        facts = [text(fact) for fact in variable.facts]
        cases = [text(case.value) for case in variable.cases]
        found[number] = [variable.name, variable.low, variable.high, facts, cases]
        waiting += program.space.defined_by(number)
    return {name(number): found[number] for number in sorted(found)}


def _eliminated(proofs: list[Any]) -> list[int]:
    """The variables that proofs take case by case."""
    found: list[int] = []
    for each in proofs:
        if isinstance(each, list):
            if len(each) > 1 and each[0] in ("use", "cases", "choice"):
                found.append(each[1])
            found += _eliminated(each)
    return found
