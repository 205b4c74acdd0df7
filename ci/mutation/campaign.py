"""Runs the program, and reads what it reports."""
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass, field

HANG_LIMIT_S = 10  # of one case
SHRINK_LIMIT_S = 20
RAPIDCHECK_LIMIT_S = 120
INTERLEAVINGS_MAX = 20000  # of one scenario
RUN_LIMIT_S = 1800  # of anything

_running = set()  # process groups


def end_all():
    for group in list(_running):
        os.killpg(group, signal.SIGKILL)


@dataclass
class Ended:
    status: int  # negative: the signal that ended it
    text: str
    cpu_s: float
    timed_out: bool


def run(words, limit_s=RUN_LIMIT_S, environment=None):
    """Runs a program and its children, all of them ended at the limit."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, env={**os.environ, **(environment or {})}) as process:
        expired = threading.Event()

        def end():
            expired.set()
            os.killpg(process.pid, signal.SIGKILL)

        _running.add(process.pid)
        timer = threading.Timer(limit_s, end)
        timer.start()
        text = process.stdout.read().decode(errors="replace")
        timer.cancel()
        _running.discard(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Ended(process.returncode, text, usage.ru_utime + usage.ru_stime, expired.is_set())


@dataclass
class Catch:
    """A campaign that stopped at the first violation of an invariant, or did not find one."""
    ended: Ended
    reported: bool = False
    case: int = 0  # the seed, or the number in the sweep; 0 = not caught
    cases: int = 0  # run until then
    cpu_s: float = 0  # for these
    others: list = field(default_factory=list)  # what else was violated, or happened, on the way: "name count"
    crashes: int = 0  # cases that ended their process, or did not end
    trace: str = ""


@dataclass
class Shrunk:
    steps_before: int
    steps: int
    seconds: float  # of real time
    minimal: bool  # without any one thing it fails otherwise, or not at all


class Program:
    """A `holdfast` program."""

    def __init__(self, path, work, rapidcheck=None):
        self.path, self.work, self.rapidcheck = path, work, rapidcheck

    def knows(self, *words):
        return run([self.path, *words]).status == 0

    def profiles(self):
        return run([self.path, "list", "profiles"]).text.split()

    def campaign(self, words, name, recheck="0"):
        out = os.path.join(self.work, name)
        shutil.rmtree(out, ignore_errors=True)
        ended = run([self.path, *words, "--jobs", "1", "--recheck", recheck, "--quiet", "--no-shrink",
                     "--hang-limit", f"{HANG_LIMIT_S}s", "--out", out])
        with open(out + ".log", "w", encoding="utf-8") as log:
            log.write(ended.text)
        try:
            with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
                return ended, json.load(file), out
        except OSError:
            return ended, None, out

    def first_catch(self, command, cases, invariant, name):
        """`command` with `cases` (["--seeds", "1-9"]; empty = all) until the first violation of `invariant`."""
        ended, report, _ = self.campaign([*command, *cases, "--stop-at", invariant], name)
        catch = Catch(ended)
        if report is None:
            return catch
        catch.reported, catch.cpu_s = True, ended.cpu_s
        catch.cases = report["seeds"]["run"]
        violated = {key: told["violated"] for key, told in report["invariants"].items() if told["violated"] > 0}
        for entry in report["violations"]:
            if entry["invariant"] not in report["invariants"]:
                violated[entry["invariant"]] = violated.get(entry["invariant"], 0) + 1
                catch.crashes += 1
        catch.others = [f"{key} {count}" for key, count in sorted(violated.items()) if key != invariant]
        if invariant not in violated:
            return catch
        catch.case = report["seeds"]["first"] + catch.cases - 1
        # That one again, by itself: a report lists only so many failures, and keeps fewer traces.
        option = cases[0] if cases else "--cases"
        again, report, out = self.campaign([*command, option, f"{catch.case}-{catch.case}"], name + "-first")
        catch.ended = again
        for entry in report["violations"] if report else []:
            if entry["trace"] and os.path.exists(os.path.join(out, entry["trace"])):
                catch.trace = os.path.join(out, entry["trace"])
        return catch

    def first_by_rapidcheck(self, invariant, cases=1000000):
        """Until the first violation, a crash, or the end of its time."""
        ended = run([self.rapidcheck, invariant, str(cases), "1"], RAPIDCHECK_LIMIT_S)
        catch = Catch(ended, reported=True, cpu_s=ended.cpu_s)
        told = re.search(r"^(caught|missed) (\d+)$", ended.text, re.MULTILINE)
        if told:
            catch.cases, catch.case = int(told[2]), int(told[2]) if told[1] == "caught" else 0
        return catch

    def first_interleaving(self, scenarios, strategy, invariant, name):
        """One scenario after the other, until an interleaving breaks the invariant; `case` counts those run."""
        catch = Catch(Ended(0, "", 0, False))
        for scenario in scenarios:
            before, sooner = catch.cases, set()
            while True:
                # An exploration ends at whatever breaks first: what is seen sooner is switched off.
                ended, report, out = self.campaign(
                    ["explore", scenario, "--strategy", strategy, "--runs", str(INTERLEAVINGS_MAX),
                     *(word for each in sorted(sooner) for word in ("--disable", each))], f"{name}-{scenario}")
                catch.ended, catch.reported, catch.cpu_s = ended, report is not None, catch.cpu_s + ended.cpu_s
                row = re.search(rf"^{re.escape(scenario)} +[\d,]+ +([\d,]+) +[\d,]+ +[\d,]+  (.*)$", ended.text,
                                re.MULTILINE)
                if not catch.reported or not row:
                    return catch
                catch.cases = before + int(row[1].replace(",", ""))
                found = {entry["invariant"]: entry["trace"] for entry in report["violations"]}
                catch.crashes += sum(each not in report["invariants"] for each in found)
                catch.others += [f"{each} 1" for each in sorted(found) if each != invariant]
                if invariant in found:
                    catch.case = catch.cases
                    trace = os.path.join(out, found[invariant] or "-")
                    catch.trace = trace if os.path.exists(trace) else ""
                    return catch
                others = {each for each in found if each in report["invariants"]} - sooner
                if not others:
                    break
                sooner |= others
        return catch

    def first_divergence(self, seeds):
        """Every seed runs again, until the first that goes another way."""
        ended, report, out = self.campaign(["run", "--seeds", seeds], "run", recheck="1/1")
        catch = Catch(ended)
        if report is None:
            return catch
        catch.reported = True
        catch.cases = report["seeds"]["run"]
        for entry in report["violations"]:
            if entry["invariant"] != "divergence":
                catch.others.append(entry["invariant"])
            elif not catch.case:
                catch.case = entry["seed"]
                catch.trace = os.path.join(out, entry["trace"]) if entry["trace"] else ""
        return catch

    def replay(self, trace, disabled):
        """The exit status, and the invariants that the trace violates."""
        ended = run([self.path, "replay", trace, "--hang-limit", f"{HANG_LIMIT_S}s",
                     *(word for name in disabled for word in ("--disable", name))])
        rows = re.findall(r"^([a-z-]+) +[\d,]+ +([\d,]+)(?:  [A-Za-z ]+)?$", ended.text, re.MULTILINE)
        return ended.status, [name for name, count in rows if count != "0"]

    def shrunk(self, trace, invariant):
        """What becomes of a trace; None where it cannot be shrunk."""
        out = trace.replace(".trace.json", ".min.trace.json")
        ended = run([self.path, "shrink", trace, "--invariant", invariant, "--time-budget", f"{SHRINK_LIMIT_S}s",
                     "--quiet", "--out", out])
        told = re.search(r" traces in ([\d.]+) s, ", ended.text)
        if ended.status != 1 or not told:
            return None
        steps = [len(json.loads(open(path, encoding="utf-8").read())["steps"]) for path in (trace, out)]
        return Shrunk(*steps, float(told.group(1)), "yes: without any one" in ended.text)
