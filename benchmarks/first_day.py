"""
The first script to run on a machine with an NVIDIA GPU: is everything right, and how fast is it?

    python benchmarks/first_day.py [--report FILE] [--seconds S] [--only STEP ...]
    python benchmarks/first_day.py --page FILE --report FILE     # docs/performance_gpu.md of a report

It compiles all programs on all cores first, then runs step after step in processes of its own, with a
timeout on each check: one that hangs or kills its process is reported and the rest goes on. The steps
are `machine` (versions, device, bandwidth of a copy), `kernels`, `products` and `warpgroups` (answers
compared with the host's, see `device_checks.py`), `calls` (graphs, streams, threads, memory pressure),
`sanitizer` (compute-sanitizer over the smallest programs) and `rows` (the programs of `bench_gpu.py`
beside PyTorch and CuPy). The report is one JSON file; docs/gpu_first_day.md says how to read it.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import queue
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import bench_gpu
import device_calls
import device_checks

from irees.target import Target, available_cores

STEPS = ("machine", *device_checks.STEPS, "calls", "sanitizer", "rows")
LIMITS = {"machine": 60.0, "sanitizer": 150.0, "rows": 90.0, "calls": 60.0}
"""Seconds that one check of a step may take."""
LIMIT = 45.0
TOOLS = ("memcheck", "racecheck", "synccheck")
ROW = {field.name for field in dataclasses.fields(bench_gpu.Row)} - {"name"}
Facts = dict[str, Any]


def checks_of(
    step: str, target: Target, options: argparse.Namespace
) -> dict[str, Callable[[], Facts]]:
    """The checks of a step by name; each gives what it found, `wrong` among it if that is so."""
    if step == "machine":
        return {"versions": device_calls.versions, "copy": device_calls.copy}
    if step == "calls":
        return device_calls.checks(target)
    if step == "rows":
        return device_calls.rows(target, options.rows, options.seconds, options.peers)
    if step == "sanitizer":
        return {tool: lambda tool=tool: sanitized(tool, options) for tool in TOOLS}

    def one(check: device_checks.Check) -> Callable[[], Facts]:
        def run() -> Facts:
            said = device_checks.run(check, target)
            return {"wrong": said} if said else {}

        return run

    return {check.name: one(check) for check in device_checks.STEPS[step]()}


# --- in a process of its own ---------------------------------------------------------------------


def tell(**facts: Any) -> None:
    """One line for the process that watches."""
    print(json.dumps(facts), flush=True)


def work(step: str, done: Sequence[str], options: argparse.Namespace) -> None:
    """Does the checks of a step but for those that are done; ends after a device failed."""
    target = Target.parse(options.target)
    for name, check in checks_of(step, target, options).items():
        if name in done:
            continue
        tell(begin=name)
        begun = time.perf_counter()
        try:
            facts = check()
        except Exception as error:
            facts = {"wrong": f"{type(error).__name__}: {str(error)[:600]}", "failed": True}
        tell(name=name, seconds=round(time.perf_counter() - begun, 2), **facts)
        if facts.get("failed"):
            # After most errors the device's context is lost.
            os._exit(3)


def prepare(part: int, parts: int, options: argparse.Namespace) -> None:
    """Compiles a share of all programs into the cache, for the device and for the host."""
    import irees

    target = Target.parse(options.target)
    every = [c for step in device_checks.STEPS if step in options.only
             for c in device_checks.STEPS[step]()]  # fmt: skip
    for check in every[part::parts]:
        try:
            check.compiled(target)
            if check.answer is None:
                irees.compile(check.text)
        except Exception as error:
            print(f"{check.name}: {error}", file=sys.stderr)


def sanitized(tool: str, options: argparse.Namespace) -> Facts:
    """What compute-sanitizer says of the small programs."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        return {"skipped": "there is no compute-sanitizer on the PATH"}
    command = [program, "--tool", tool, "--error-exitcode", "77", sys.executable, __file__]
    command += ["--target", options.target, "--small"]
    limit = LIMITS["sanitizer"] - 5
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired as late:
        out = late.stdout.decode(errors="replace") if isinstance(late.stdout, bytes) else ""
        return {"wrong": f"not done in {limit:.0f} s", "said": out[-2000:]}
    lines = [x for x in answer.stdout.splitlines() if x.startswith("=========")]
    facts: Facts = {"summary": lines[-1] if lines else answer.stderr[-300:]}
    facts["programs"] = answer.stdout.count("-- ")
    if answer.returncode:
        facts |= {"wrong": f"exit status {answer.returncode}", "said": answer.stdout[-6000:]}
    return facts


def small(options: argparse.Namespace) -> None:
    """Runs the small programs once, in this process."""
    target = Target.parse(options.target)
    for step in device_checks.STEPS:
        for check in device_checks.STEPS[step]():
            if check.small:
                print(f"-- {check.name}", flush=True)
                if said := device_checks.run(check, target, 1):
                    print(f"-- wrong: {said}", flush=True)


# --- the process that watches --------------------------------------------------------------------


def lines_of(process: subprocess.Popen[str]) -> queue.Queue[str | None]:
    """The lines of a process as they come, and None at the end."""
    found: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            found.put(line)
        found.put(None)

    threading.Thread(target=read, daemon=True).start()
    return found


def texts_of(process: subprocess.Popen[str]) -> Callable[[], str]:
    """What a process says on its standard error, once it is over."""
    found: list[str] = []

    def read() -> None:
        assert process.stderr is not None
        found.append(process.stderr.read())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()

    def said() -> str:
        reader.join(5)
        return "".join(found)

    return said


def watched(step: str, command: Sequence[str], limit: float) -> Iterator[Facts]:
    """The facts of each check of a step, whatever happens to the process that does them."""
    done: list[str] = []
    while True:
        process = subprocess.Popen(
            [*command, "--work", step, "--done", json.dumps(done)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        errors = texts_of(process)
        lines, current, ended = lines_of(process), "", False
        while not ended:
            try:
                line = lines.get(timeout=limit)
            except queue.Empty:
                process.kill()
                yield {"name": current, "wrong": f"no answer in {limit:.0f} s"}
                done.append(current)
                break
            if line is None:
                ended = True
            elif line.startswith("{"):
                facts = json.loads(line)
                current = facts.get("begin", "")
                if not current:
                    done.append(facts["name"])
                    yield facts
        process.wait()
        if ended and current:
            said = errors()[-600:]
            yield {"name": current, "wrong": f"the process ended ({process.returncode}): {said}"}
            done.append(current)
        elif ended and process.returncode != 3:
            if process.returncode:
                yield {"name": "(step)", "wrong": errors()[-1500:]}
            return


def compile_all(command: Sequence[str]) -> Facts:
    """Compiles everything, on all cores."""
    begun, cores = time.perf_counter(), available_cores()

    def one(part: int) -> str:
        call = [*command, "--prepare", f"{part}/{cores}"]
        environment = os.environ | {"IREES_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run(
            call, env=environment, capture_output=True, text=True, check=False
        ).stderr[-1500:]

    with ThreadPoolExecutor(cores) as pool:
        said = "".join(pool.map(one, range(cores)))
    return {"name": "compiled", "seconds": round(time.perf_counter() - begun, 1), "said": said}


# --- the page ------------------------------------------------------------------------------------


def page(report: dict[str, list[Facts]]) -> str:
    """docs/performance_gpu.md: what was right, and the rows."""
    about = {f["name"]: f for step in ("machine", "when") for f in report.get(step, ())}
    versions, when = about["versions"], report["when"][0]
    copied = about.get("copy", {}).get("gigabytes", 0.0)
    text = (
        f"Made on {when['name']} by `{when['command']}`: {versions['nvidia-smi']}; Python "
        f"{versions['python']}, torch {versions.get('torch')}, NVRTC {versions['nvrtc']}. TF32 is "
        "off for all. `kernels / PyTorch's` is the time that the device works, without the gaps "
        "between kernels; `host us` is what the host takes to ask for one call."
    )
    rows = [bench_gpu.Row(f["name"], **{k: v for k, v in f.items() if k in ROW}) for f in
            report.get("rows", ())]  # fmt: skip
    lines = [bench_gpu.page(rows, copied, text)]
    lines += [note + "\n" for note in report.get("notes", ())]
    lines += ["## Answers", ""]
    for step, every in report.items():
        if step in ("machine", "when", "rows", "compile", "notes"):
            continue
        bad = [f"{f['name']}: {f['wrong'][:200]}" for f in every if "wrong" in f]
        lines += [f"- {step}: {len(every) - len(bad)} of {len(every)} right"]
        lines += [f"  - {x}".replace("\n", " ") for x in bad]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the steps and writes the report; the status is 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--report", type=Path, default=Path("first_day.json"))
    parser.add_argument("--seconds", type=float, default=1.0, help="budget of a row")
    parser.add_argument("--only", nargs="*", choices=STEPS, default=list(STEPS))
    parser.add_argument("--rows", nargs="*", default=[], help="rows of bench_gpu.py, of all")
    parser.add_argument("--peers", nargs="*", default=["CuPy"], help="beside PyTorch")
    parser.add_argument("--target", default="cuda")
    for internal in ("--work", "--done", "--prepare"):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    parser.add_argument("--small", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--page", type=Path, help="write the page of a report, and run nothing")
    options = parser.parse_args()
    if options.page:
        options.page.write_text(page(json.loads(options.report.read_text())))
        return 0
    if options.small:
        small(options)
        return 0
    if options.prepare:
        prepare(*map(int, options.prepare.split("/")), options)
        return 0
    if options.work:
        work(options.work, json.loads(options.done), options)
        return 0
    given = ["--target", options.target, "--seconds", str(options.seconds)]
    given += ["--only", *options.only, "--rows", *options.rows, "--peers", *options.peers]
    command = [sys.executable, __file__, *given]
    report: dict[str, list[Facts]] = {"compile": [compile_all(command)]}
    print(f"compiled in {report['compile'][0]['seconds']} s", flush=True)
    for step in options.only:
        report[step] = []
        for facts in watched(step, command, LIMITS.get(step, LIMIT)):
            report[step].append(facts)
            options.report.write_text(json.dumps(report, indent=1))
            print(step, json.dumps(facts)[:700], flush=True)
    asked = ["python", "benchmarks/first_day.py", "--seconds", str(options.seconds)]
    asked += [] if options.only == list(STEPS) else ["--only", *options.only]
    today = datetime.date.today().isoformat()
    report["when"] = [{"name": today, "command": shlex.join(asked)}]
    options.report.write_text(json.dumps(report, indent=1))
    wrong = [(step, f["name"]) for step, all_ in report.items() for f in all_ if "wrong" in f]
    print(f"{sum(map(len, report.values()))} checks, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
