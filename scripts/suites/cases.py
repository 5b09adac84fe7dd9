"""The files that the writers write, each with the way in which it is to be read."""

import os
from dataclasses import dataclass, field

ROWS = 60


def texts(rows=ROWS):
    """Texts of which every fifth repeats the one before. They hold what writers of text must quote or escape."""
    marks = ["，讲一件事", ', "quoted", 引号', "\\ backslash \\", "'single'; semicolon|pipe\ttab", " spaces at the end "]
    return [f"第{row - (row % 5 == 4)}篇{marks[(row - (row % 5 == 4)) % len(marks)]}" for row in range(rows)]


def line_texts(rows=ROWS):
    """The same, where some hold newlines too."""
    return [text.replace("，", "\n").replace(";", "\r\n") for text in texts(rows)]


def ids(rows=ROWS):
    """Ids that are unique."""
    return [f"d-{row}" for row in range(rows)]


def cycle(values, rows=ROWS):
    """A column of all the values, over and over, with a null behind each turn."""
    return [[*values, None][row % (len(values) + 1)] for row in range(rows)]


@dataclass
class Case:
    """A file or folder. `format` says which judge compares; `dialect` has the parameters of the csv module.

    `expected` is "must be read" or "must be rejected" where a suite says so for the case.
    """

    name: str
    path: str
    format: str
    options: list = field(default_factory=list)
    dialect: dict = field(default_factory=dict)
    text: str = "text"
    expected: str = ""
    encoding: str = ""


class Suite:
    """The cases of one writer. What the writer refuses to write is kept with its reason and is no case."""

    def __init__(self, name, version, folder):
        self.name, self.version = name, version
        self.folder = os.path.join(folder, name.replace(" ", "-"))
        self.cases, self.unwritten = [], []
        os.makedirs(self.folder)

    def add(self, name, suffix, format, write, **more):
        """Lets `write(path)` write one more file. It is called here, so that it may use the variables of a loop."""
        place = os.path.join(self.folder, f"case-{len(self.cases) + len(self.unwritten)}")
        os.makedirs(place)
        path = os.path.join(place, "corpus" + suffix)
        try:
            write(path)
        except Exception as error:  # Each writer has errors of its own, and none of them ends the run.
            self.unwritten.append((name, f"{type(error).__name__}: {first_line(error)}"))
        else:
            self.cases.append(Case(name, path, format, **more))


def first_line(error):
    """The first line of a message that is not empty."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:160]
