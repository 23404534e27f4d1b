"""Run every part in processes of its own and keep what each has found as soon as it has found it.

    tests/gpu/run                       # on a machine with a GPU: all parts, at most eight minutes
    tests/gpu/run loss training         # some of them, after tuning
    tests/gpu/run --small               # all parts at tiny shapes on the CPU, which proves the script and measures nothing

The folder gets results.json (card, driver, versions, date; of every part its state and rows), one CSV per part and run.log. It is
that of --output, or of the variable OUT, or gpu_results. A part that fails says why in one line, and the others go on; the exit
status is 1 if any has failed. A missing package is named before anything runs; only TensorRT may be absent.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gpu import results as found
from gpu.parts import Part, Step, parts

_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning|OutOfMemory\w*): ")
_CHAINED = "The above exception was the direct cause of the following exception:"
_LONGEST_REASON = 300


class Stopped(BaseException):
    """The run was told to end."""


@dataclass
class _Running:
    step: Step
    process: subprocess.Popen[bytes]
    folder: Path
    log: IO[bytes]
    begun: float


def reason_in(log: str) -> str:
    """The line of a log that says why: the last exception's and the first one's behind it, or else the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    why = ([*lines, *_exceptions(lines)] or ["it wrote nothing"])[-1]
    if _CHAINED in lines and (first := _exceptions(lines[: lines.index(_CHAINED)])):
        why = f"{why[: _LONGEST_REASON // 2]} <- {first[-1]}"
    return why[:_LONGEST_REASON]


def _exceptions(lines: list[str]) -> list[str]:
    return [line for line in lines if _EXCEPTION.match(line)]


def _ended_because(code: int, log: str) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit status {code}: {reason_in(log)}"


def missing(part: Part) -> list[str]:
    """The packages of a part that are not installed."""
    return [name for name in part.needs if importlib.util.find_spec(name) is None]


class Conductor:
    """Runs parts one after the other; `results` and the files in `folder` are up to date after every step."""

    def __init__(self, folder: Path, results: dict[str, Any], environment: Mapping[str, str]) -> None:
        self.folder, self.results, self.environment = folder, results, environment
        self._running: list[_Running] = []

    def run(self, chosen: list[Part]) -> bool:
        """Whether no part has failed. When stopped, what was done is kept, and what ran counts as failed."""
        found.save(self.folder, self.results)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
            try:
                begun = time.monotonic()
                spare = sum(part.seconds for part in chosen)
                for index, part in enumerate(chosen):
                    # all that the parts to come do not need: earlier ones may have been quick, later ones cannot run
                    later = sum(other.seconds for other in chosen[index + 1 :] if not missing(other))
                    self._run_part(part, Path(work), begun + spare - later)
            except Stopped as stop:
                self._end_all(str(stop))
                found.save(self.folder, self.results)
        states = [self.results["parts"][part.name]["status"] for part in chosen]
        return all(state in (found.PASSED, found.LEFT_OUT) for state in states)

    def _run_part(self, part: Part, work: Path, end: float) -> None:
        record = self.results["parts"][part.name]
        absent = missing(part)
        if absent:
            state = found.LEFT_OUT if part.optional else found.FAILED
            record |= {"status": state, "reason": f"not installed: {', '.join(absent)}"}
        else:
            begun = time.monotonic()
            record |= {"status": found.FAILED, "reason": "it did not come to its end"}
            self._part, self._record = part, record
            self._run_steps(work / part.name, begun, end)
            wrong = [step["reason"] for step in record["steps"] if step["status"] != found.PASSED]
            state = found.FAILED if wrong else found.PASSED
            record |= {"status": state, "reason": "; ".join(wrong)}
            record["seconds"] = round(time.monotonic() - begun, 1)
        found.save(self.folder, self.results)
        print(f"{part.name}: {record['status']} {record['reason']}".rstrip(), flush=True)

    def _run_steps(self, work: Path, begun: float, end: float) -> None:
        waiting = list(self._part.steps)
        limit = f"the {end - begun:.0f} s of the part are over"
        while waiting or self._running:
            while waiting and len(self._running) < self._part.at_once:
                step = waiting.pop(0)
                self._running.append(self._start(step, work / str(len(waiting))))
            time.sleep(0.05)
            for one in [one for one in self._running if one.process.poll() is not None]:
                self._finish(one, "")
            if time.monotonic() > end:
                self._end_all(limit)
                for step in waiting:
                    self._note(step, 0.0, f"not started: {limit}")
                return

    def _start(self, step: Step, folder: Path) -> _Running:
        folder.mkdir(parents=True)
        log = (folder / "log").open("w+b")
        process = subprocess.Popen(
            [sys.executable, *step.arguments, "--output", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # what a killed process leaves lies there, and goes with the folder
            env={**self.environment, "TMPDIR": str(folder)},
            # a group of its own, so that the processes that it starts end with it
            process_group=0,
        )
        return _Running(step, process, folder, log, time.monotonic())

    def _end_all(self, why: str) -> None:
        for one in list(self._running):
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait()
            self._finish(one, why)

    def _finish(self, one: _Running, stopped: str) -> None:
        self._running.remove(one)
        one.log.seek(0)
        log = one.log.read().decode("utf-8", errors="replace")
        one.log.close()
        with (self.folder / "run.log").open("a", encoding="utf-8") as file:
            file.write(f"== {self._part.name}: {one.step.name}\n{log}\n")
        rows = found.rows_of(one.folder / one.step.table)
        self._record["rows"] += rows
        wrong = [text for text in map(self._part.wrong, rows) if text]
        reason = f"stopped: {stopped}" if stopped else "; ".join(wrong)
        if not reason and one.process.returncode != 0:
            reason = _ended_because(one.process.returncode, log)
        if not reason and not rows:
            reason = f"it wrote no {one.step.table}"
        self._note(one.step, time.monotonic() - one.begun, reason)

    def _note(self, step: Step, seconds: float, reason: str) -> None:
        reason = f"{step.name}: {reason}" if reason and len(self._part.steps) > 1 else reason
        state = found.FAILED if reason else found.PASSED
        self._record["steps"].append(
            {"name": step.name, "status": state, "seconds": round(seconds, 1), "reason": reason}
        )
        if reason:
            self._record["reason"] = reason
        found.save(self.folder, self.results)
        print(f"  {self._part.name}, {step.name}: {seconds:.1f} s {reason}".rstrip(), flush=True)


def environment_of_steps(small: bool, inherited: Mapping[str, str]) -> dict[str, str]:
    """Kernels are interpreted in a small run and never in a real one, whatever the shell says."""
    environment = {
        key: value for key, value in inherited.items() if key not in ("TRITON_INTERPRET", "MARGINCAL_KERNEL")
    }
    environment["PYTHONUNBUFFERED"] = "1"
    if small:
        environment |= {"TRITON_INTERPRET": "1", "MARGINCAL_KERNEL": "triton", "CUDA_VISIBLE_DEVICES": ""}
        environment["OMP_NUM_THREADS"] = "1"
    return environment


def _facts(environment: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "gpu.machine"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise SystemExit(f"tests/gpu/run: found no facts about this machine: {reason_in(done.stderr)}")
    return json.loads(done.stdout.splitlines()[-1])


def _stop(number: int, _: Any) -> None:
    _handle_signals(signal.SIG_IGN)  # a second one must not end the tidying up
    raise Stopped(f"by {signal.Signals(number).name}")


def _handle_signals(handler: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, and give the exit status."""
    parser = argparse.ArgumentParser(
        prog="tests/gpu/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="correctness, loss, inference, training, tensorrt")
    parser.add_argument("--small", action="store_true", help="tiny shapes on the CPU, kernels interpreted")
    parser.add_argument("--output", type=Path, default=Path(os.environ.get("OUT") or "gpu_results"))
    options = parser.parse_args(arguments)
    every = parts(options.small)
    unknown = set(options.parts) - {part.name for part in every}
    if unknown:
        parser.error(f"found the part(s) {sorted(unknown)}, expected some of {[part.name for part in every]}")
    if (options.output / found.NAME).exists():
        parser.error(f"--output: found earlier results in {options.output}, expected a folder without any")
    chosen = [part for part in every if not options.parts or part.name in options.parts]
    environment = environment_of_steps(options.small, os.environ)
    for part in chosen:
        if absent := missing(part):
            print(f"{part.name} cannot run, not installed: {', '.join(absent)}", flush=True)
    machine = {**_facts(environment), "small": options.small}
    if not options.small and machine["torch"] and not machine["card"]:
        print(
            f"tests/gpu/run: found no CUDA device with torch {machine['torch']}, expected one; --small proves the script "
            "on a CPU",
            file=sys.stderr,
        )
        return 1
    print(", ".join(f"{key} {value}" for key, value in machine.items() if value), flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    conductor = Conductor(options.output, found.empty(machine, [part.name for part in chosen]), environment)
    _handle_signals(_stop)
    passed = conductor.run(chosen)
    print(f"{options.output / found.NAME}: {'nothing failed' if passed else 'something failed'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
