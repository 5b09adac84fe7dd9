"""Scores against the labelled sets.

    gold.py peer SET CLUSTERS     pair F1; CLUSTERS: numbers of documents on each line, all of them alike
    gold.py ours SET OUTPUT       pair F1 of an output folder that was written with --pairs all

SET: a folder with docs.parquet, and clusters.tsv (id, cluster: all pairs inside of a cluster are true, all others false)
or pairs.tsv (a, b, label). Labels of the one kind 1 alone: every pair not listed is false. Other labels: only listed
pairs count, and `authentic` and 0 are false.
"""

import collections
import itertools
import os
import sys

import polars

FALSE = {"0", "authentic"}


def labels(folder):
    """The true pairs, and the pairs that count at all (None: every pair)."""
    if os.path.exists(f"{folder}/clusters.tsv"):
        clusters = collections.defaultdict(list)
        for line in open(f"{folder}/clusters.tsv", encoding="utf-8"):
            document, cluster = line.rstrip("\n").split("\t")
            clusters[cluster].append(document)
        return {frozenset(pair) for ids in clusters.values() for pair in itertools.combinations(ids, 2)}, None
    lines = [line.rstrip("\n").split("\t") for line in open(f"{folder}/pairs.tsv", encoding="utf-8")]
    true = {frozenset(fields[:2]) for fields in lines if fields[2] not in FALSE}
    counted = {frozenset(fields[:2]) for fields in lines}
    return true, counted if counted != true else None


def f1(folder, found):
    true, counted = labels(folder)
    if counted is not None:
        found &= counted
    right = len(found & true)
    precision, recall = right / max(1, len(found)), right / len(true)
    return f"{2 * right / (len(found) + len(true)):.3f} (precision {precision:.3f}, recall {recall:.3f})"


def peer(folder, clusters):
    ids = polars.read_parquet(f"{folder}/docs.parquet", columns=["id"])["id"].to_list()
    found = set()
    for line in open(clusters):
        rows = map(int, line.split())
        found.update(frozenset(pair) for pair in itertools.combinations([ids[row] for row in rows], 2))
    print(f1(folder, found))


def ours(folder, output):
    pairs = polars.read_parquet(f"{output}/pairs/*.parquet", columns=["a", "b"])
    print(f1(folder, {frozenset(pair) for pair in pairs.iter_rows()}))


if __name__ == "__main__":
    {"peer": peer, "ours": ours}[sys.argv[1]](*sys.argv[2:])
