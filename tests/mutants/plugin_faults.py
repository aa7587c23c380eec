"""Faults of what is told of plug-ins and of the streams of the command line."""

from __future__ import annotations

from mutant import Mutant

STREAMS = "tests/tools/test_output_streams.py"

MUTANTS = (
    Mutant(
        "A536",
        "a fact of a plug-in target is text where passes calculate",
        "irees/accelerators.py",
        "            _check_fact(name, fact, value, getattr(cpu, fact))",
        "            pass",
        ("tests/test_accelerators.py::test_a_target_that_does_not_work",),
    ),
    Mutant(
        "A537",
        "a closed output is a bug",
        "irees/tools/main.py",
        "        if sys.stdout is None:",
        "        if False:",
        (STREAMS,),
    ),
    Mutant(
        "A538",
        "a full device is a bug",
        "irees/tools/main.py",
        "error.errno == errno.ENOSPC",
        "error.errno == errno.EBADF",
        (STREAMS,),
    ),
)
