"""The planted bugs of properties/mutants/: each is applied to a copy, built and must be caught by what it names."""
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field

import scoreboard
from build import BuildError
from campaign import Program, run

SEEDS_MAX = 20000
RAPIDCHECK = "properties/rapidcheck/holdfast_rapidcheck"
DETERMINISM = "determinism"  # in the place of an invariant: caught by a run that differs when it runs again
RECHECKED_SEEDS = "1-500"
TEST_LIMIT_S = 300
OFF_ROUNDS_MAX = 8

# Verdicts. Those from BROKEN on say that the patch, or the run, is no good, whatever the checks are.
CAUGHT = "caught"
MISSED = "NOT CAUGHT"
CRASHED = "CAUGHT ONLY BY A CRASH"
SEEN = "SEEN WITH THE CHECKS OFF"
NOT_APPLIED = "THE PATCH DOES NOT APPLY"
NOT_COMPILED = "DOES NOT COMPILE"
BROKEN = "BROKEN"
MISSED_VERDICTS = (MISSED, CRASHED, SEEN)


@dataclass
class Mutant:
    name: str
    patch: str
    invariant: str = ""
    tests: str = ""  # a filter of the test program
    scenarios: list = field(default_factory=list)  # of `holdfast explore`, any of which is to break the invariant
    files: list = field(default_factory=list)


@dataclass
class Outcome:
    mutant: Mutant
    verdict: str
    by: str = "-"  # what caught it
    first: str = "-"  # the first case that did
    cases: str = "-"  # run until then
    others: str = "-"
    off: str = "-"  # with the check off
    board: dict = field(default_factory=dict)  # strategy -> Score


def exit_status(outcomes):
    if any(each.verdict != CAUGHT and each.verdict not in MISSED_VERDICTS for each in outcomes):
        return 2
    return 1 if any(each.verdict != CAUGHT for each in outcomes) else 0


def read_mutant(patch):
    with open(patch, encoding="utf-8") as file:
        text = file.read()
    mutant = Mutant(os.path.basename(patch).removesuffix(".patch"), patch)
    for key, value in re.findall(r"^(invariant|explore|caught by): *(.*?) *$", text.split("\n--- ")[0], re.MULTILINE):
        if key == "invariant":
            mutant.invariant = value
        elif key == "explore":
            mutant.scenarios = value.split()
        else:
            mutant.tests = value
    mutant.files = re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)
    return mutant


class Prover:
    """Proves mutants against one build; `work` is its to write in."""

    def __init__(self, root, build, work, options):
        self.root, self.build, self.work, self.options = root, build, work, options
        self.plain = Program(build.path("holdfast"), work)

    def prove(self, mutant):
        folder = os.path.join(self.work, mutant.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "built"))
        source = os.path.join(folder, "source")
        if bool(mutant.invariant) == bool(mutant.tests) or not mutant.files:
            return Outcome(mutant, BROKEN, by="names no invariant, and no tests; or both")
        for top in {file.split("/")[0] for file in mutant.files}:
            shutil.copytree(os.path.join(self.root, top), os.path.join(source, top))
        with open(mutant.patch, encoding="utf-8") as file, open(os.path.join(folder, "patch.log"), "w") as log:
            applied = subprocess.run(["patch", "-p1", "-F0", "-s", "--no-backup-if-mismatch", "-d", source], stdin=file,
                                     stdout=log, stderr=log, check=False)
        if applied.returncode != 0:
            return Outcome(mutant, NOT_APPLIED)
        program = "holdfast" if mutant.invariant else "properties/holdfast_tests"
        if mutant.tests and (why := self._passes_without(mutant)):
            return Outcome(mutant, BROKEN, by=why)
        try:
            path = self.build.compile(source, mutant.files, os.path.join(folder, "built"), program)
            rapidcheck = None
            if self.options.strategies and mutant.invariant and not mutant.scenarios:
                rapidcheck = self.build.compile(source, mutant.files, os.path.join(folder, "built"), RAPIDCHECK)
        except BuildError as error:
            with open(os.path.join(folder, "compile.log"), "w", encoding="utf-8") as log:
                log.write(str(error))
            return Outcome(mutant, NOT_COMPILED)
        if mutant.invariant == DETERMINISM:
            outcome = self._divergence(mutant, Program(path, folder))
        elif mutant.invariant:
            outcome = self._campaigns(mutant, Program(path, folder, rapidcheck))
        else:
            outcome = self._tests(mutant, path)
        shutil.rmtree(os.path.join(folder, "built"))
        return outcome

    def _passes_without(self, mutant):
        """Why the tests that the mutant names say nothing about it; None where they do."""
        program = self.build.path("properties/holdfast_tests")
        ended = run([program, "--gtest_filter=" + mutant.tests], TEST_LIMIT_S)
        if ended.status != 0:
            return "these tests fail without the bug, too"
        return None if re.search(r"^\[  PASSED  \] [1-9]", ended.text, re.MULTILINE) else "names no test"

    def _tests(self, mutant, path):
        ended = run([path, "--gtest_filter=" + mutant.tests], TEST_LIMIT_S)
        failed = re.findall(r"^\[  FAILED  \] (\S+?),? .*\(\d+ ms\)$", ended.text, re.MULTILINE)
        outcome = Outcome(mutant, MISSED, by=mutant.tests, off="-")
        if ended.status == 1 and failed:
            outcome.verdict, outcome.first, outcome.cases = CAUGHT, failed[0], str(len(failed))
        elif ended.status != 0:
            outcome.verdict = CRASHED
        return outcome

    def _divergence(self, mutant, program):
        """By exit status 3 alone, of the campaign and of the replay of its trace; with no second runs, not at all."""
        catch = program.first_divergence(RECHECKED_SEEDS)
        outcome = Outcome(mutant, MISSED, mutant.invariant, others=", ".join(sorted(set(catch.others))) or "-")
        if not catch.reported:
            outcome.verdict, outcome.by = BROKEN, f"holdfast run: exit status {catch.ended.status}"
        if not catch.case:
            return outcome
        outcome.first, outcome.cases = f"run {catch.case}", str(catch.cases)
        again = program.replay(catch.trace, [])[0] if catch.trace else None
        if catch.ended.status != 3 or again != 3:
            outcome.verdict, outcome.off = BROKEN, f"exit status {catch.ended.status}, of the replay {again}"
            return outcome
        if self._fails_without(outcome, catch.trace):
            return outcome
        off, _, _ = program.campaign(["run", "--seeds", RECHECKED_SEEDS], "run-off")
        outcome.off = "clean" if off.status == 0 else f"exit status {off.status}"
        outcome.verdict = CAUGHT if off.status == 0 else SEEN
        return outcome

    def _campaigns(self, mutant, program):
        tried = {}
        # A bug that only shows between steps is explored, and nothing else has to find it.
        for command in ["explore"] if mutant.scenarios else self.options.by:
            if command == "explore":
                catch = program.first_interleaving(mutant.scenarios, scoreboard.INTERLEAVING[0], mutant.invariant, command)
            else:
                cases = ["--seeds", self.options.seeds] if command == "run" else []
                catch = program.first_catch([command], cases, mutant.invariant, command)
            if not catch.reported:
                return Outcome(mutant, BROKEN, by=f"holdfast {command}: exit status {catch.ended.status}")
            tried[command] = catch
            if catch.case:
                break
        outcome = Outcome(mutant, MISSED, mutant.invariant, others=", ".join(catch.others) or "-")
        if self.options.strategies:
            outcome.board = scoreboard.score(program, mutant, self.options.seeds, self.options.strategies, tried)
        if not catch.case:
            outcome.verdict = CRASHED if any(each.crashes for each in tried.values()) else MISSED
            return outcome
        outcome.first, outcome.cases = f"{command} {catch.case}", str(catch.cases)
        # What a failure is told by: the exit status, the report and the trace.
        if catch.ended.status != 1 or not catch.trace:
            outcome.verdict = BROKEN
            outcome.off = f"exit status {catch.ended.status}, {'a' if catch.trace else 'no'} trace"
            return outcome
        if self._fails_without(outcome, catch.trace):
            return outcome
        outcome.off, clean = self._switched_off(mutant, program, catch.trace)
        outcome.verdict = CAUGHT if clean else SEEN
        return outcome

    def _fails_without(self, outcome, trace):
        """Nor does a catch mean anything where the trace fails without the bug."""
        status, tripped = self.plain.replay(trace, [])
        if status != 0:
            outcome.verdict = BROKEN
            outcome.off = f"fails without the bug, too: {', '.join(tripped) or f'exit status {status}'}"
        return status != 0

    def _switched_off(self, mutant, program, trace):
        """The invariant by itself first; then, as long as others see the bug, those as well."""
        disabled, tripped = [], [mutant.invariant]
        for _ in range(OFF_ROUNDS_MAX):
            disabled += tripped
            status, tripped = program.replay(trace, disabled)
            if status == 0:
                return "clean" if len(disabled) == 1 else f"clean, with {', '.join(disabled[1:])} off too", True
            if not tripped:
                return f"exit status {status}, nothing violated", False
        return f"NOT CLEAN: {', '.join(tripped)}", False
