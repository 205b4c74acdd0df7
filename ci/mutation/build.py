"""A program with some sources changed: only what differs is compiled, and linked with the rest of an existing build."""
import os
import re
import shutil
import subprocess


class BuildError(Exception):
    """What the compiler, or who else was asked, said."""


class Build:
    """A CMake build directory that is up to date, as Ninja knows it; `targets` besides those of "all"."""

    def __init__(self, root, directory, targets=()):
        self.root, self.directory = root, directory
        self.commands = {}  # object, archive or program -> the command that makes it
        for line in self._ninja("commands", "all", *targets):
            made = re.search(r" -o (\S+)", line) or re.search(r"\bar qc (\S+)", line)
            if made:
                self.commands[made.group(1)] = line
        self.objects_from = {}  # absolute path of a source -> the objects compiled from it
        made = None
        for line in self._ninja("deps"):
            if line.startswith("    "):
                path = os.path.normpath(os.path.join(directory, line.strip()))
                self.objects_from.setdefault(path, set()).add(made)
            elif ": #deps" in line:
                made = line.split(": #deps")[0]

    def _ninja(self, tool, *arguments):
        told = subprocess.run(["ninja", "-C", self.directory, "-t", tool, *arguments], capture_output=True, text=True)
        if told.returncode != 0:
            raise BuildError(f"{self.directory} is no build of Ninja's: {told.stderr.strip()}")
        return told.stdout.splitlines()

    def path(self, program):
        return os.path.join(self.directory, program)

    def has(self, program):
        return program in self.commands and os.path.exists(self.path(program))

    def compile(self, source, files, out, program):
        """Links `program` into the folder `out`; `files`, and the top folders that hold them, lie in `source`. Objects
        that an earlier call left there are as they should be."""
        changed = set()
        for file in files:
            changed |= self.objects_from.get(os.path.join(self.root, file), set())
        # Ninja knows what a precompiled header is made of, but not that its users are made of the same.
        headers = {made for made in changed if made.endswith(".gch")}
        changed |= {made for header in headers for made in self.commands if self._uses(made, header)}
        link = self.commands[program]
        direct = {word for word in link.split() if word.endswith(".o")}
        archived = {word for archive in link.split() if archive.endswith(".a") and archive in self.commands
                    for word in self.commands[archive].split() if word.endswith(".o")}
        objects = sorted(changed & (direct | archived))
        if not objects:
            raise BuildError(f"nothing of {program} is compiled from {', '.join(files)}")
        headers = {header for header in headers if any(self._uses(made, header) for made in objects)}
        for made in (each for each in sorted(headers) + objects if not os.path.exists(os.path.join(out, each))):
            self._run(self._moved(made, source, out, headers))
        for made in direct & changed:
            link = link.replace(f" {made} ", f" {out}/{made} ")
        # What comes before the archives is taken instead of what they hold.
        extra = " ".join(f"{out}/{made}" for made in objects if made not in direct)
        result = os.path.join(out, os.path.basename(program))
        self._run(link.replace(f" -o {program} ", f" {extra} -o {result} "))
        return result

    def _use_of(self, header):
        return f" -include {self.path(header[: -len('.gch')])} "

    def _uses(self, made, header):
        return made != header and self._use_of(header) in self.commands[made]

    def _moved(self, made, source, out, headers):
        """The command that makes an object, or a precompiled header, in `out` and from what lies in `source`."""
        os.makedirs(os.path.dirname(os.path.join(out, made)), exist_ok=True)
        command = re.sub(r" -MD -MT \S+ -MF \S+", "", self.commands[made])
        for header in headers:
            plain = os.path.join(out, header[: -len(".gch")])
            command = command.replace(self._use_of(header), f" -include {plain} ")
            if header == made:
                shutil.copy(self.path(header[: -len(".gch")]), plain)
        together = re.search(r" -c (\S+/Unity/\S+)", command)
        if together:
            command = command.replace(together[1], os.path.join(out, made + ".cxx"))
            with open(together[1], encoding="utf-8") as theirs, open(os.path.join(out, made + ".cxx"), "w") as ours:
                ours.write(self._from(source, theirs.read()))
        command = self._from(source, command)
        # A bug may leave unused what it passes by.
        return command.replace(f" -o {made} ", f" -Wno-error -o {out}/{made} ")

    def _from(self, source, text):
        for top in os.listdir(source):
            text = text.replace(f"{self.root}/{top}/", f"{source}/{top}/")
        return text

    def _run(self, command):
        told = subprocess.run(["bash", "-c", command], cwd=self.directory, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if told.returncode != 0:
            raise BuildError(told.stdout)
