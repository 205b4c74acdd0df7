"""Planted bug x strategy: how soon each catches it, and how short the failure gets."""
import re
from dataclasses import dataclass
from statistics import median

from campaign import Shrunk

STRATEGIES = {
    "random": ["run"],
    "swarm": ["run", "--profile", "swarm"],
    "coverage": ["run", "--profile", "coverage"],
    "sweep": ["sweep"],
}
RAPIDCHECK = "rapidcheck"  # its stateful runner over the same system and checks, a program of its own
# Of `holdfast explore`; the first is what proves a bug.
INTERLEAVING = ("dfs", "random", "pct", "sleep-sets")


@dataclass
class Score:
    cases: int  # until the first catch by the bug's invariant
    seconds: float  # of processor time, for these
    shrunk: Shrunk | None


def aligned(rows):
    """Lines; numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) if re.fullmatch(r"[\d.]+", cell) else cell.ljust(width)
                      for cell, width in zip(row, widths)).rstrip() for row in rows]


def strategies_of(program):
    """Those that a program has."""
    profiles = program.profiles()
    has_sweep = program.knows("sweep", "--help")
    return [name for name, words in STRATEGIES.items()
            if (words[-1] in profiles if "--profile" in words else has_sweep or words[0] != "sweep")]


def score(program, mutant, seeds, strategies, known):
    """Strategy -> Score, or None where it did not catch the bug. `known`: catches by commands as they are."""
    board = {}
    if program.rapidcheck and not mutant.scenarios:
        catch = program.first_by_rapidcheck(mutant.invariant)
        board[RAPIDCHECK] = Score(catch.cases, catch.cpu_s, None) if catch.case else None
    for name in INTERLEAVING if mutant.scenarios else strategies:
        words = ["explore"] if name == INTERLEAVING[0] else STRATEGIES.get(name, [name])
        catch = known.get(" ".join(words))
        if catch is None and mutant.scenarios:
            catch = program.first_interleaving(mutant.scenarios, name, mutant.invariant, name)
        elif catch is None:
            catch = program.first_catch(words, [] if words == ["sweep"] else ["--seeds", seeds], mutant.invariant, name)
        board[name] = None
        if catch.case:
            shrunk = program.shrunk(catch.trace, mutant.invariant) if catch.trace else None
            board[name] = Score(catch.cases, catch.cpu_s, shrunk)
    return board


def tables(outcomes):
    """Lines: what campaigns and sweeps catch, then what explorations do."""
    lines = []
    for explored, strategies in ((False, (*STRATEGIES, RAPIDCHECK)), (True, INTERLEAVING)):
        scored = [each for each in outcomes if each.board and bool(each.mutant.scenarios) == explored]
        if scored:
            lines += [*([""] if lines else []), *aligned(rows_of(scored, strategies)), *summary(scored, strategies)]
    return lines


def rows_of(outcomes, strategies):
    """Cells of a table, with a heading."""
    rows = [["bug", "invariant"]]
    for name in strategies:
        rows[0] += [name + ": cases", "s", "steps"]
    for outcome in outcomes:
        row = [outcome.mutant.name, outcome.mutant.invariant]
        for name in strategies:
            told = outcome.board.get(name)
            row += ([str(told.cases), f"{told.seconds:.2f}", str(told.shrunk.steps) if told.shrunk else "-"] if told
                    else ["missed" if name in outcome.board else "-", "", ""])
        rows.append(row)
    return rows


def summary(outcomes, strategies):
    lines = []
    for name in strategies:
        tried = [outcome.board[name] for outcome in outcomes if name in outcome.board]
        caught = [each for each in tried if each]
        if not caught:
            lines.append(f"{name}: not tried" if not tried else f"{name}: caught 0 of {len(tried)}")
            continue
        spent = sum(each.seconds for each in caught)
        lines.append(f"{name}: caught {len(caught)} of {len(tried)}; median {median(e.cases for e in caught):.0f} cases, "
                     f"{median(e.seconds for e in caught):.2f} s; {60 * len(caught) / max(spent, 0.01):.0f} caught a "
                     f"minute of processor time")
    shrunk = [score.shrunk for outcome in outcomes for score in outcome.board.values() if score and score.shrunk]
    if shrunk:
        lines.append(f"{len(shrunk)} failures shrunk: median {median(e.steps_before for e in shrunk):.0f} steps to "
                     f"{median(e.steps for e in shrunk):.0f} in {median(e.seconds for e in shrunk):.2f} s, longest "
                     f"{max(e.steps for e in shrunk)}, {sum(e.minimal for e in shrunk)} of them 1-minimal")
    return lines
