"""The generated bugs: every site of core/ broken by itself, in one build, by campaigns, the sweep and the unit tests."""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import time
from collections import Counter

import sites
from build import BuildError
from campaign import HANG_LIMIT_S, run

SEEDS = "1-500"
# Of the sweep: scenarios that are short and go different ways.
SCENARIOS = ("warm_up", "registered_by_others", "registration_refused", "cold_write", "mixed_write", "two_writers",
             "leftovers", "orphans", "old_plan", "restart_during_get", "evict_failed", "memory_tier", "snapshot_failed")
CASE_LIMIT_S = 120  # of one campaign or run of the tests, which take a few seconds
PROGRESS_EVERY = 50
SURVIVORS = "properties/mutants/survivors.txt"


def read_survivors(root):
    """Key -> why the core may as well be broken there."""
    told, key = {}, None
    with open(os.path.join(root, SURVIVORS), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            if not line.startswith(" "):
                key = line.strip()
                if key in told:
                    raise BuildError(f"{SURVIVORS}:{number}: listed twice")
                told[key] = ""
            elif key is None:
                raise BuildError(f"{SURVIVORS}:{number}: a reason of nothing")
            else:
                told[key] = f"{told[key]} {line.strip()}".strip()
    for key, reason in told.items():
        if not reason:
            raise BuildError(f"{SURVIVORS}: no reason is given for {key}")
    return told


def tests_of_core(root):
    """The test sources that are about core/ alone."""
    names = {os.path.splitext(os.path.basename(path))[0]
             for path in glob.glob("core/**/*.?pp", root_dir=root, recursive=True)}
    kept = []
    for path in sorted(glob.glob(os.path.join(root, "properties", "*_test.cpp"))):
        with open(path, encoding="utf-8") as file:
            included = set(re.findall(r'#include "holdfast/(\w+)/', file.read()))
        if os.path.basename(path).removesuffix("_test.cpp") in names or ("core" in included and "sim" not in included):
            kept.append(os.path.basename(path))
    return kept


class Generated:
    def __init__(self, root, work, jobs):
        self.root, self.jobs = root, jobs
        self.tree, self.build = os.path.join(work, "tree"), os.path.join(work, "build")
        self.sites = sites.find_sites(root)

    def make(self):
        """The program and the tests of core/, with every site in them."""
        shutil.rmtree(self.tree, ignore_errors=True)
        os.makedirs(self.tree)
        for folder in ("core", "fakes", "sim", "real_device", "properties"):
            shutil.copytree(os.path.join(self.root, folder), os.path.join(self.tree, folder))
        shutil.copy(os.path.join(self.root, "CMakeLists.txt"), self.tree)
        wanted = tests_of_core(self.root)
        for path in glob.glob(os.path.join(self.tree, "properties", "*_test.cpp")):
            if os.path.basename(path) not in wanted:
                os.remove(path)
        sites.rewrite(self.tree, self.sites)
        self._quietly("cmake", "-G", "Ninja", "-S", self.tree, "-B", self.build, "-DCMAKE_BUILD_TYPE=Release",
                      "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -w", "-DHOLDFAST_CUDA=OFF", "-DHOLDFAST_WERROR=OFF")
        self._quietly("cmake", "--build", self.build, "--parallel", str(self.jobs))

    @staticmethod
    def _quietly(*words):
        told = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if told.returncode != 0:
            raise BuildError(f"{' '.join(words)}:\n{told.stdout[-6000:]}")

    def caught_by(self, number):
        """campaign, sweep, tests; or None."""
        program = os.path.join(self.build, "holdfast")
        out = os.path.join(self.build, "out", str(number))
        common = ["--jobs", "1", "--quiet", "--no-shrink", "--stop-at", "any", "--hang-limit", f"{HANG_LIMIT_S}s",
                  "--out", out]
        ways = (("campaign", [program, "run", "--seeds", SEEDS, *common]),
                ("sweep", [program, "sweep", *SCENARIOS, *common]),
                ("tests", [os.path.join(self.build, "properties", "holdfast_tests"), "--gtest_brief=1",
                           "--gtest_fail_fast"]))
        for name, words in ways:
            ended = run(words, CASE_LIMIT_S, {"HOLDFAST_MUTANT": str(number)})
            shutil.rmtree(out, ignore_errors=True)
            if ended.timed_out or ended.status != 0:
                self.last_words = ended.text
                return name
        return None


def prove(root, work, jobs, share, wanted):
    """Runs the sites of a share (or those whose key holds one of `wanted`), tells, and gives the exit status."""
    listed = read_survivors(root)
    begin = time.monotonic()
    generated = Generated(root, work, jobs)
    keys = {site.key for site in generated.sites}
    chosen = [site for site in generated.sites if site.number % share[1] == share[0] % share[1]]
    if wanted:
        chosen = [site for site in generated.sites if any(text in site.key for text in wanted)]
    functions = {(site.file, site.function) for site in generated.sites}
    print(f"generated: {len(generated.sites)} bugs in {len(functions)} functions of core/, {len(chosen)} of them now; "
          f"found in {time.monotonic() - begin:.0f} s", flush=True)
    begin = time.monotonic()
    generated.make()
    print(f"generated: one program of them all, built in {time.monotonic() - begin:.0f} s", flush=True)
    if (by := generated.caught_by(0)) is not None:
        raise BuildError(f"without any bug the {by} fail:\n{generated.last_words[-6000:]}")

    begin = time.monotonic()
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        for verdict in pool.map(lambda site: generated.caught_by(site.number), chosen):
            verdicts.append(verdict)
            if len(verdicts) % PROGRESS_EVERY == 0:
                print(f"generated: {len(verdicts)} of {len(chosen)}, {verdicts.count(None)} survived", flush=True)
    minutes = (time.monotonic() - begin) / 60
    with open(os.path.join(work, "verdicts.txt"), "w", encoding="utf-8") as file:
        for site, verdict in zip(chosen, verdicts):
            file.write(f"{site.number}\t{verdict or 'SURVIVED'}\t{site.file}:{site.line}\t{site.key}\n")

    bad = []
    for site, verdict in zip(chosen, verdicts):
        if verdict is None and site.key not in listed:
            bad.append(f"{site.file}:{site.line}: survived, and is not listed:\n  {site.key}")
        elif verdict is not None and site.key in listed:
            bad.append(f"{site.file}:{site.line}: listed, but caught by the {verdict}:\n  {site.key}")
    bad += [f"listed, but there is no such place:\n  {key}" for key in listed if key not in keys]
    for line in bad:
        print(line)
    counts = Counter(verdicts)
    print(f"generated: {len(chosen)} bugs: " +
          ", ".join(f"{counts[name]} caught by the {name}" for name in ("campaign", "sweep", "tests") if counts[name]) +
          f", {counts[None]} survived, {len(bad)} not as {SURVIVORS} has it; "
          f"{len(chosen) / max(minutes, 1e-9):.0f} a minute")
    return 1 if bad else 0
