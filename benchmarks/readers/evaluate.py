#!/usr/bin/env python3
"""Scores pairs that a program found by the labels of readers: precision, recall and average precision, weighted.

    evaluate.py LABELS PAIRS              PAIRS: two ids on each line, and perhaps a similarity, with tabs between
    evaluate.py LABELS --clusters FILE    FILE: ids of one cluster on each line, with tabs between

Pairs labelled ? are left out. A pair that was found without similarity has 1, one that was not found has 0. In brackets:
95 % of 1,000 bootstrap samples of the pairs. Needs nothing but Python.
"""

import csv
import random
import sys


def labelled(file):
    with open(file, encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows if row["label"] in ("0", "1")]


def found_pairs(file, wanted):
    """The labelled pairs of a file, each with its similarity."""
    with open(file, encoding="utf-8") as lines:
        for a, b, *similarity in (line.rstrip("\n").split("\t") for line in lines):
            pair = frozenset((a, b))
            if pair in wanted:
                yield pair, float(similarity[0]) if similarity else 1.0


def found_clusters(file, wanted):
    """The labelled pairs whose ids are in one cluster."""
    cluster = {}
    with open(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            cluster.update(dict.fromkeys(line.rstrip("\n").split("\t"), number))
    for pair in wanted:
        a, b = pair
        if a in cluster and cluster[a] == cluster.get(b):
            yield pair, 1.0


def figures(rows):
    """rows: similarity, whether the same, weight."""
    same = sum(weight for _, true, weight in rows if true)
    all_found = sum(weight for similarity, _, weight in rows if similarity > 0)
    right = sum(weight for similarity, true, weight in rows if similarity > 0 and true)
    average = taken = hit = 0
    for least in sorted({similarity for similarity, _, _ in rows}, reverse=True):
        step = [(true, weight) for similarity, true, weight in rows if similarity == least]
        more = sum(weight for true, weight in step if true)
        hit, taken = hit + more, taken + sum(weight for _, weight in step)
        average += more / same * hit / taken if same else 0
    return right / all_found if all_found else None, right / same if same else None, average if same else None


def line(name, rows):
    drawn = random.Random(0)
    samples = [figures(drawn.choices(rows, k=len(rows))) for _ in range(1000)]
    shown = []
    for place, figure in enumerate(figures(rows)):
        values = sorted(sample[place] for sample in samples if sample[place] is not None)
        out = len(values) // 40
        shown.append("-" if figure is None else f"{figure:.3f} ({values[out]:.3f}, {values[-1 - out]:.3f})")
    return f"| {name} | {len(rows)} | " + " | ".join(shown) + " |"


def main(labels, *found):
    rows = labelled(labels)
    wanted = {frozenset((row["a"], row["b"])) for row in rows}
    pairs = dict(found_clusters(found[1], wanted) if found[0] == "--clusters" else found_pairs(found[0], wanted))
    of = lambda row: (pairs.get(frozenset((row["a"], row["b"])), 0.0), row["label"] == "1", float(row["weight"]))
    print("| length | pairs | precision | recall | average precision |\n|---|---|---|---|---|")
    for length in dict.fromkeys(row["length"] for row in rows):
        print(line(length, [of(row) for row in rows if row["length"] == length]))
    print(line("all", [of(row) for row in rows]))


if __name__ == "__main__":
    given = sys.argv[1:]
    if len(given) != (3 if "--clusters" in given else 2) or "--clusters" in given[:1]:
        sys.exit(__doc__)
    main(*given)
