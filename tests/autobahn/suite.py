"""Loads the case classes of Autobahn|Testsuite, which are Python 2, unchanged into Python 3.

In Python 2 a string is bytes. Here every literal of the cases is a string with one character for
each byte (Latin-1), and `fuzz.py` converts at the border to the library. The rest is syntax.
"""

import importlib.abc
import importlib.machinery
import pathlib
import re
import sys

from autobahn.websocket.utf8validator import Utf8Validator

# What the sources of the cases have that is not Python 3, in the order of the substitutions.
SUBSTITUTIONS = [
    # Only self-tests print.
    (r"(?m)^(\s*)print\b.*$", r"\1pass"),
    (r"(?m)^(from autobahn\.websocket\.utf8validator import|import binascii|import array)\b.*$", ""),
    # The only divisions are of integers.
    (r" / ", " // "),
    # A class of Python 3 is an object already.
    (r"\(object, Case, *\)", "(Case, )"),
    # The compression extension, which is never offered, and a case that the suite itself leaves out.
    (r"(?m)^.*\b(case12_x_x|Case1[23]_X_X\w*|case9_9_1)\b.*$", ""),
]


class Hex:
    """What the cases use of `binascii`."""

    @staticmethod
    def b2a_hex(text):
        return (text.encode("latin-1") if isinstance(text, str) else text).hex()


class Validator:
    """The validator of the library, for strings of bytes."""

    def __init__(self):
        self.inner = Utf8Validator()

    def reset(self):
        self.inner.reset()

    def validate(self, text):
        return self.inner.validate(text.encode("latin-1"))


class Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The modules of a folder, which name each other without a package."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if path is None and (self.folder / f"{name}.py").is_file():
            return importlib.machinery.ModuleSpec(name, self)
        return None

    def exec_module(self, module):
        run(self.folder / f"{module.__name__}.py", vars(module))


def run(path, names):
    """Runs a source with these names."""
    source = path.read_text("latin-1")
    for pattern, replacement in SUBSTITUTIONS:
        source = re.sub(pattern, replacement, source)
    names.update(xrange=range, unichr=chr, binascii=Hex, Utf8Validator=Validator)
    exec(compile(source, str(path), "exec"), names)


def load(suite):
    """Returns all cases by their ids, in the order of the suite."""
    folder = pathlib.Path(suite) / "autobahntestsuite" / "case"
    sys.meta_path.insert(0, Modules(folder))
    names = {"__name__": "cases"}
    run(folder / "__init__.py", names)
    case = sys.modules["case"].Case
    # Pickles of equal values differ in Python 3 if one of them shares an object.
    case.compare = lambda self, left, right: left == right
    return {found.__name__.removeprefix("Case").replace("_", "."): found for found in names["Cases"]}
