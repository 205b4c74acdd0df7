"""Patches of which each goes wrong in its own way: ci/mutants must tell them apart."""
import difflib
import os
import shutil

import planted

QUIET = "core/src/break_even.cpp"  # small, and no campaign goes through it
BUSY = "core/src/keys.cpp"
FAKE = "fakes/src/virtual_clock.cpp"
HEADER_OF_CORE = "invariant: exact-bytes"
HEADER_OF_TESTS = "caught by: MemoryFiles*"


def appended(text):
    return lambda source: source + text


def crashing(source):
    """Every function of the file's that is defined at the left margin ends the process."""
    return source.replace(") {\n", ") {\n  __builtin_trap();\n")


# Name, header, file, what becomes of it, whether the patch is of that file; the verdict and the exit status it must have.
CASES = (
    ("does-not-apply", HEADER_OF_CORE, QUIET, None, planted.NOT_APPLIED, 2),
    ("does-not-compile", HEADER_OF_CORE, QUIET, appended("this is no C++\n"), planted.NOT_COMPILED, 2),
    ("names-nothing", "kind: none", QUIET, appended("// harmless\n"), planted.BROKEN, 2),
    ("harmless", HEADER_OF_CORE, QUIET, appended("// harmless\n"), planted.MISSED, 1),
    ("crashes", HEADER_OF_CORE, BUSY, crashing, planted.CRASHED, 1),
    ("harmless-to-tests", HEADER_OF_TESTS, FAKE, appended("// harmless\n"), planted.MISSED, 1),
    ("names-no-test", "caught by: NoSuchSuite.*", FAKE, appended("// harmless\n"), planted.BROKEN, 2),
)


def patch_of(root, file, change):
    with open(os.path.join(root, file), encoding="utf-8") as source:
        plain = source.read()
    before, after = plain, change(plain) if change else plain + "more\n"
    if change is None:
        before = plain.replace(plain.splitlines()[-1], "a line that is not there")
        after = before + "more\n"
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/" + file, "b/" + file)
    return "".join(lines)


def run(root, work, prover):
    """True if each is told by its verdict and its exit status."""
    folder = os.path.join(work, "self-test")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    good = True
    for name, header, file, change, verdict, status in CASES:
        patch = os.path.join(folder, name + ".patch")
        with open(patch, "w", encoding="utf-8") as out:
            out.write(f"{header}\n\n{patch_of(root, file, change)}")
        outcome = prover.prove(planted.read_mutant(patch))
        told = outcome.verdict, planted.exit_status([outcome])
        right = told == (verdict, status)
        good = good and right
        print(f"self-test {name}: {told[0]}, exit status {told[1]}" +
              ("" if right else f"; NOT AS IT MUST BE: {verdict}, exit status {status}"), flush=True)
    return good
