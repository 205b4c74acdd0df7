"""Where core/ can be broken by rule: a call deleted, a condition flipped, a bound off by one; and the sources rewritten
so that a number chooses, while the program runs, which one is."""
import glob
import os
import re
from dataclasses import dataclass

from clang import cindex
from clang.cindex import CursorKind as Kind

KINDS = ("call", "condition", "bound")
SITES_MAX = 3  # of a kind, in one function

FUNCTIONS = (Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR,
             Kind.CONVERSION_FUNCTION)
LOOPS = (Kind.WHILE_STMT, Kind.DO_STMT, Kind.FOR_STMT)
OPPOSITE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
SWITCH = "holdfast/core/mutation_switch.hpp"


@dataclass
class Site:
    file: str  # from the root
    function: str
    kind: str
    text: str  # of the source, in one line
    line: int
    start: int  # byte offsets in the file
    end: int
    parts: list  # what stands there instead: text, or (start, end) of the source; {id} in a text is the number
    number: int = 0

    @property
    def key(self):
        return " | ".join((self.file, self.function, self.kind, self.text))


def find_sites(root):
    """All of them, numbered from 1, in the order of files and places; no more than SITES_MAX of a kind and function."""
    sources = sorted(glob.glob("core/src/*.cpp", root_dir=root))
    headers = sorted(glob.glob("core/include/holdfast/core/*.hpp", root_dir=root))
    index = cindex.Index.create()
    flags = ["-x", "c++", "-std=c++20", "-DNDEBUG", f"-I{root}/core/include"]
    everything = "".join(f'#include "{os.path.join(root, header)}"\n' for header in headers)
    sites = []
    for unit, files in [("all_headers.cpp", headers)] + [(source, [source]) for source in sources]:
        path = os.path.join(root, "core", "src", "all_headers.cpp") if files is headers else os.path.join(root, unit)
        unsaved = [(path, everything)] if files is headers else None
        parsed = index.parse(path, args=flags, unsaved_files=unsaved)
        errors = [str(each) for each in parsed.diagnostics if each.severity >= cindex.Diagnostic.Error]
        if errors:
            raise ValueError("\n".join(errors))
        for file in files:
            sites += _Reader(root, file).read(parsed.cursor)
    sites.sort(key=lambda site: (site.file, site.start, -site.end, KINDS.index(site.kind)))
    return _numbered(_a_few_of_each(sites))


def _a_few_of_each(sites):
    groups = {}
    for site in sites:
        groups.setdefault((site.file, site.function, site.kind), []).append(site)
    kept = []
    for group in groups.values():
        count = min(len(group), SITES_MAX)
        # Spread over the function: the first, the last, and between them.
        kept += [group[i * (len(group) - 1) // max(count - 1, 1)] for i in range(count)]
    return [site for site in sites if any(site is each for each in kept)]


def _numbered(sites):
    seen = {}
    for number, site in enumerate(sites, 1):
        site.number = number
        seen[site.key] = seen.get(site.key, 0) + 1
        if seen[site.key] > 1:
            site.text += f" #{seen[site.key]}"
    return sites


class _Reader:
    """The sites of one file."""

    def __init__(self, root, file):
        self.file, self.path, self.sites = file, os.path.join(root, file), []
        with open(self.path, "rb") as source:
            self.source = source.read()

    def read(self, cursor):
        for child in cursor.get_children():
            place = child.location.file
            if place is not None and os.path.normpath(place.name) != self.path:
                continue
            if child.kind in FUNCTIONS and child.is_definition():
                self._function(child)
            else:
                self.read(child)
        return self.sites

    def _function(self, cursor):
        names, scope = [cursor.spelling], cursor.semantic_parent
        while scope is not None and scope.kind != Kind.TRANSLATION_UNIT:
            if scope.spelling and scope.spelling != "holdfast" and "(anonymous" not in scope.spelling:
                names.insert(0, scope.spelling)
            scope = scope.semantic_parent
        self.function = re.sub(r"<.*", "", "::".join(names)) if "operator" not in names[-1] else "::".join(names)
        self.result_is_status = _is_status(cursor.result_type)
        for child in cursor.get_children():
            if child.kind == Kind.COMPOUND_STMT:
                self._statements(child, False)

    def _statements(self, cursor, in_lambda):
        children = list(cursor.get_children())
        kind = cursor.kind
        if kind == Kind.COMPOUND_STMT:
            bodies = children
        elif kind == Kind.IF_STMT:
            bodies = self._if(cursor, children)
        elif kind in LOOPS:
            bodies = self._loop(cursor, children)
        elif kind == Kind.CXX_FOR_RANGE_STMT:
            bodies = children[-1:]
        elif kind in (Kind.CASE_STMT, Kind.DEFAULT_STMT):
            bodies = children[-1:]
        else:
            bodies = []
            self._expression(cursor, children, in_lambda)
        for child in bodies:
            if child.kind.is_expression():
                self._deleted_call(child)
        for child in children:
            self._statements(child, in_lambda or kind == Kind.LAMBDA_EXPR)

    def _if(self, cursor, children):
        """Notes the condition, unless it is the compiler's; gives the branches."""
        if re.match(rb"if\s+constexpr\b", self.source[cursor.extent.start.offset:]):
            return children[1:]
        branches = 2 if len(children) >= 3 and self._has_else(cursor, children) else 1
        if not any(child.kind == Kind.VAR_DECL for child in children):
            self._flipped(children[-branches - 1])
        return children[-branches:]

    def _has_else(self, cursor, children):
        between = self.source[children[-2].extent.end.offset:children[-1].extent.start.offset]
        return re.search(rb"\belse\b", between) is not None

    def _loop(self, cursor, children):
        if cursor.kind == Kind.DO_STMT:
            self._flipped(children[1])
            return children[:1]
        if cursor.kind == Kind.WHILE_STMT:
            if children[0].kind != Kind.VAR_DECL:
                self._flipped(children[0])
            return children[-1:]
        # for: whichever parts there are come in order; the condition is what ends at the second semicolon.
        semicolons = 0
        for token in cursor.get_tokens():
            if token.spelling == ";":
                semicolons += 1
                if semicolons == 2:
                    end = token.extent.start.offset
                    for child in children[:-1]:
                        past = child.extent.end.offset
                        if child.kind.is_expression() and past <= end and not self.source[past:end].strip():
                            self._flipped(child)
                    break
        return children[-1:]

    def _expression(self, cursor, children, in_lambda):
        kind = cursor.kind
        if kind == Kind.CONDITIONAL_OPERATOR:
            self._flipped(children[0])
        elif kind == Kind.RETURN_STMT and children:
            self._returned(children[0], in_lambda)
        elif kind == Kind.VAR_DECL and _is_status(cursor.type) and children:
            self._no_status(children[-1])
        elif kind == Kind.BINARY_OPERATOR and len(children) == 2:
            self._operator(cursor, children)

    def _returned(self, value, in_lambda):
        if value.type.get_canonical().kind == cindex.TypeKind.BOOL:
            self._flipped(value)
        elif self.result_is_status and not in_lambda:
            self._no_status(value)

    def _operator(self, cursor, children):
        start, end = _range(cursor)
        left, right = _range(children[0]), _range(children[1])
        operator = self.source[left[1]:right[0]].decode().strip()
        if operator in ("&&", "||"):
            for child in children:
                self._flipped(child)
        elif operator in OPPOSITE:
            both = [left, f" {OPPOSITE[operator]} ", right]
            self._add("bound", start, end, ["(holdfast_mutant({id}) ? (", *both, ") : (", left, f" {operator} ", right,
                                            "))"])
        elif operator in ("+", "-") and self.source[right[0]:right[1]] == b"1":
            self._add("bound", start, end, ["(", left, f" {operator} (holdfast_mutant({{id}}) ? 0 : 1))"])

    def _flipped(self, condition):
        start, end = _range(condition)
        self._add("condition", start, end,
                  ["(holdfast_mutant({id}) != static_cast<bool>(", (start, end), "))"])

    def _deleted_call(self, statement):
        start, end = _range(statement)
        text = self.source[start:end].decode()
        if re.match(r"(static_cast<void>\()?[A-Za-z_*][\w:.>\[\]()*-]*?(<[^()]*>)?\(", text) and text.endswith(")"):
            # Room made in advance changes nothing but the time.
            if ".reserve(" not in text and not re.match(r"[^(]*[^=!<>]=[^=]", text):
                self._add("call", start, end,
                          ["(holdfast_mutant({id}) ? void() : static_cast<void>(", (start, end), "))"])

    def _no_status(self, value):
        """A call whose outcome is a Status: without it, all is well."""
        start, end = _range(value)
        if re.match(rb"[A-Za-z_][\w:.>\[\]*-]*(<[^()]*>)?\(", self.source[start:end]):
            self._add("call", start, end, ["(holdfast_mutant({id}) ? ::holdfast::Status{} : ::holdfast::Status(",
                                           (start, end), "))"])

    def _add(self, kind, start, end, parts):
        text = self.source[start:end].decode()
        if not text or any(site.start == start and site.end == end and site.kind == kind for site in self.sites):
            return
        line = self.source.count(b"\n", 0, start) + 1
        self.sites.append(Site(self.file, self.function, kind, re.sub(r"\s+", " ", text), line, start, end, parts))


def _range(cursor):
    return cursor.extent.start.offset, cursor.extent.end.offset


def _is_status(type_):
    return re.fullmatch(r"(holdfast::)?(Status|Result<void>)", type_.get_canonical().spelling) is not None


def rewrite(root, sites):
    """The files below `root` that have sites, rewritten in place."""
    by_file = {}
    for site in sites:
        by_file.setdefault(site.file, []).append(site)
    for file, own in by_file.items():
        path = os.path.join(root, file)
        with open(path, "rb") as source:
            text = source.read()
        changed = _rendered(text, 0, len(text), own)
        first = b"#pragma once\n" if changed.startswith(b"//") and b"#pragma once\n" in changed else b""
        include = f'#include "{SWITCH}"\n'.encode()
        changed = changed.replace(first, first + include, 1) if first else include + changed
        with open(path, "wb") as source:
            source.write(changed)
    with open(os.path.join(root, "core/include", SWITCH), "w", encoding="utf-8") as header:
        header.write("#pragma once\n#include <type_traits>\nextern const unsigned long holdfast_mutant_active;\n"
                     "constexpr bool holdfast_mutant(unsigned long number) {\n"
                     "  return !std::is_constant_evaluated() && holdfast_mutant_active == number;\n}\n")
    with open(os.path.join(root, "core/src/mutation_switch.cpp"), "w", encoding="utf-8") as source:
        source.write(f'#include "{SWITCH}"\n#include <cstdlib>\n'
                     "static unsigned long asked() {\n  const char* text = std::getenv(\"HOLDFAST_MUTANT\");\n"
                     "  return text == nullptr ? 0 : std::strtoul(text, nullptr, 10);\n}\n"
                     "const unsigned long holdfast_mutant_active = asked();\n")


def _rendered(text, start, end, sites):
    """text[start:end] with `sites`, all of them inside, outer ones first, rewritten."""
    out, at, left = [], start, list(sites)
    while left:
        site = left.pop(0)
        inside = [each for each in left if each.start >= site.start and each.end <= site.end]
        left = left[len(inside):]
        out.append(text[at:site.start])
        for part in site.parts:
            if isinstance(part, str):
                out.append(part.replace("{id}", str(site.number)).encode())
            else:
                out.append(_rendered(text, *part, [each for each in inside
                                                   if each.start >= part[0] and each.end <= part[1]]))
        at = site.end
    out.append(text[at:end])
    return b"".join(out)
