"""
Certificates: the proofs that the accesses of a kernel are in bounds, as JSON.

A certificate lists, for each dispatch, the accesses in program order, and each distinct goal with
its proof. Polynomials are strings over variables `v<number>`. A proof is one of

    "low"                                   by the intervals of the variables
    ["use", v, fact, factor, multiple, p]   p proves factor * goal + (factor - 1) - multiple * fact;
                                            optional further proofs: factor >= 1, multiple >= 0
    ["cases", v, [p, ...]]                  one proof for each case of v
    ["choice", v, [p, ...]]                 the same, also substituting in what v defines
    ["never", fact, p]                      p refutes a fact of this case; with fact "0", the proofs
                                            show the negation of its condition
    ["more", number, p]                     p proves the goal minus a number
    ["drop", more, p]                       p proves the goal minus `more`, which is at least 0 by
                                            the intervals of its variables

Each variable that occurs is listed with its bounds, facts and cases.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from irees.analysis.accesses.host import Program, Site
from irees.analysis.accesses.polynomials import Polynomial
from irees.analysis.accesses.prover import Step
from irees.analysis.accesses.walk import GUARDED, Access

KINDS = ("proved", GUARDED)
TOGETHER = "together"
"""Accesses that are not proved disjoint from those of other parallel iterations."""


def name(number: int) -> str:
    """Prints a variable."""
    return f"v{number}"


def text(polynomial: Polynomial) -> str:
    """Prints a polynomial."""
    return polynomial.text(name).replace(" ", "")


def proof(step: Step) -> Any:
    """Returns a proof as JSON."""
    if step.kind == "low":
        return "low"
    inner = [proof(then) for then in step.then]
    if step.kind == "use":
        factors = [text(step.factor), text(step.multiple)]
        return ["use", step.variable, text(step.fact), *factors, *inner]
    if step.kind == "never":
        return ["never", text(step.fact), *inner]
    if step.kind in ("more", "drop"):
        return [step.kind, text(step.fact), inner[0]]
    return [step.kind, step.variable, inner]


def kind_of(access: Access) -> str:
    """Returns the kind of an access, one of `KINDS`."""
    return GUARDED if GUARDED in access.op.attributes else "proved"


def counts(sites: list[Site]) -> dict[str, int]:
    """Counts the accesses of an executable by kind, over all of its sites."""
    accesses = [access for site in sites for access in site.accesses]
    found = Counter(map(kind_of, accesses))
    return {kind: found[kind] for kind in KINDS} | {TOGETHER: sum(not a.apart for a in accesses)}


def sites_of(program: Program, executable: str) -> list[Site]:
    """Returns the sites of an executable."""
    return [site for site in program.sites if site.kernel.partition(".")[0] == executable]


def certificate(program: Program, sites: list[Site]) -> str:
    """Returns the certificate of an executable with these sites, as JSON."""
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
    """Returns name, bounds, facts and cases of each variable that occurs."""
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
    """Returns the variables that proofs eliminate or split on."""
    found: list[int] = []
    for each in proofs:
        if isinstance(each, list):
            if len(each) > 1 and each[0] in ("use", "cases", "choice"):
                found.append(each[1])
            found += _eliminated(each)
    return found
