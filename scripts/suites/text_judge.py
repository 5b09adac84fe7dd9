"""Compares a job over CSV or JSON lines with its input: records by a reference reader, as lists in order."""

import bz2
import csv
import gzip
import io
import json
import os
import subprocess
import sys
from collections import Counter

from job import REMOVAL

csv.field_size_limit(sys.maxsize)


def content(path):
    """The bytes of a file, decompressed by its ending."""
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".gz"):
        return gzip.decompress(data)
    if path.endswith(".bz2"):
        return bz2.decompress(data)
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
    return data


def files_of(path):
    """The files that a job reads of a path, in the order of their names."""
    if os.path.isfile(path):
        return [path]
    found = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if not name.startswith((".", "_"))]
    return sorted(found)


def decoded(data, encoding):
    """The text of the bytes. A byte order mark tells the encoding if it is neither given nor UTF-8."""
    if encoding:
        return data.decode(encoding).removeprefix("\ufeff")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    return data.decode("utf-8-sig")


def csv_records(case, path, removed):
    """The header and the rows of a file, without the fields of a removal. Empty lines are no rows."""
    rows = [tuple(row) for row in csv.reader(io.StringIO(decoded(content(path), case.encoding), newline=""), **case.dialect) if row]
    if removed:
        rows = [row[: -len(REMOVAL)] for row in rows]
    header = rows[0] if rows else ()
    place = header.index(case.text) if case.text in header else None
    return header, [(row[place] if place is not None and len(row) == len(header) else None, row) for row in rows[1:]]


def json_records(case, path, removed):
    """The lines of a file, each as its text and as pairs of keys and values, so that doubled keys stay."""
    lines = content(path).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return (), [json_record(case, line, removed) for line in lines if line.strip()]


def json_record(case, line, removed):
    """One line; numbers are kept as their letters, and a line that is not JSON is its own record."""
    try:
        pairs = json.loads(line, object_pairs_hook=Pairs, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None, line.decode("utf-8", "replace")
    if removed:
        pairs = pairs[: -len(REMOVAL)]
    text = next((value for name, value in pairs if name == case.text), None) if isinstance(pairs, Pairs) else None
    return text, repr(pairs)


class Pairs(list):
    """The keys and values of an object in their order."""

    def __getitem__(self, key):
        return Pairs(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)


READERS = {"csv": csv_records, "jsonl": json_records}


def judge(case, run):
    """Returns what differs between the input and the output, or nothing."""
    read = READERS[case.format]
    inputs = [read(case, path, False) for path in files_of(case.path)]
    headers = [header for header, _ in inputs]
    outputs = []
    for kind in ("kept", "removed"):
        parts = [read(case, path, kind == "removed") for path in run.parts(kind)]
        outputs.append([record for _, records in parts for record in records])
        strange = [header for header, _ in parts if header not in headers]
        if strange:
            return f"{kind} has the header {strange[0]}"
    return differs([record for _, records in inputs for record in records], *outputs, bool(run.rejects)) or partition_lost(case, run)


def partition_lost(case, run):
    """Names the folders `column=value` of the input that the output does not have."""
    before, after = (
        {word for path in paths for word in path.split("/") if "=" in word}
        for paths in (files_of(case.path), run.parts("kept") + run.parts("removed"))
    )
    return f"the folders {sorted(before - after)} are lost" if before - after else None


def differs(before, kept, removed, rejects):
    """Compares lists of texts with their records: nothing new, nothing lost without a reject, order kept, the first of each text kept."""
    new = Counter(kept + removed) - Counter(before)
    if new:
        return f"{sum(new.values())} records that the input does not have, such as {str(next(iter(new))[1])[:160]}"
    lost = Counter(before) - Counter(kept + removed)
    if lost and not rejects:
        return f"{sum(lost.values())} records are lost without a reject, such as {str(next(iter(lost))[1])[:160]}"
    if rejects:
        return None
    first, expected = set(), ([], [])
    for record in before:
        expected[record[0] in first].append(record)
        first.add(record[0])
    if (kept, removed) != expected:
        return f"kept {len(kept)} and removed {len(removed)}, and not {len(expected[0])} and {len(expected[1])}"
    return None
