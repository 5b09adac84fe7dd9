"""Judges what was removed from mixed.parquet against the truth of truth.rs (docs/design/accuracy.md).

    judge.py export CORPUS.parquet OUT    texts, one on each line; tab and newline become a space
    judge.py truth TRUTH                  the figures of the truth itself
    judge.py brute TRUTH                  the truth against brute force, on a sample
    judge.py ours TRUTH CORPUS.parquet OUTPUT    an output folder of dedup-job
    judge.py pairs TRUTH CORPUS.parquet OUTPUT   its pairs, where the run had --pairs all
    judge.py peer TRUTH CLUSTERS          a cluster on each line, the numbers of its rows; the first row stays,
                                          and a line of one row is a document removed for no other
    judge.py clusters CORPUS.parquet OUTPUT OUT  an output folder of dedup-job as such clusters
    judge.py named CORPUS.parquet CLUSTERS OUT   such clusters with ids instead of rows, for benchmarks/readers/evaluate.py
    judge.py count CLUSTERS               the number of removed documents, where there is no truth
"""

import collections
import itertools
import random
import sys

import polars


class Truth:
    """Documents by row; `text` numbers equal texts alike, `near` holds the other texts that a text matches."""

    def __init__(self, folder):
        self.folder = folder
        self.text = [int(line) for line in open(f"{folder}/texts")]
        self.pairs = [tuple(map(int, line.split())) for line in open(f"{folder}/pairs")]
        self.copies = collections.Counter(self.text)
        self.near = collections.defaultdict(list)
        for a, b in self.pairs:
            self.near[a].append(b)
            self.near[b].append(a)

    def count(self, copies):
        """Pairs among documents of which there are `copies` of each text."""
        same = sum(n * (n - 1) // 2 for n in copies.values())
        return same + sum(copies[a] * copies[b] for a, b in self.pairs)

    def greedy(self):
        """Rows that go when, in input order, a document goes if it matches one that stays."""
        kept, removed = set(), []
        for row, text in enumerate(self.text):
            if text in kept or any(near in kept for near in self.near[text]):
                removed.append(row)
            else:
                kept.add(text)
        return removed

    def components(self):
        """The connected component of each text, named by its smallest text."""
        component = {}
        for start in range(len(self.copies)):
            waiting = [start] if start not in component else []
            while waiting:
                text = waiting.pop()
                if text not in component:
                    component[text] = start
                    waiting += self.near[text]
        return component

    def judge(self, removed):
        """A table row about a set of removed rows."""
        kept = collections.Counter(text for row, text in enumerate(self.text) if row not in removed)
        gone = [self.text[row] for row in removed]
        unsound = sum(not kept[text] and not any(kept[near] for near in self.near[text]) for text in gone)
        useful = sum(self.copies[text] > 1 or bool(self.near[text]) for text in gone)
        component = self.components()
        removable = len(self.text) - len(set(component.values()))
        wiped = set(component.values()) - {component[text] for text in kept}
        left = 1000 * self.count(kept) / max(1, len(removed))
        precision, recall = useful / max(1, len(removed)), useful / removable
        return f"{len(removed):,} | {unsound:,} | {left:,.2f} | {precision:.3f} | {recall:.3f} | {len(wiped):,}"


def export(corpus, out):
    as_space = str.maketrans("\t\n", "  ")
    texts = polars.read_parquet(corpus, columns=["text"])["text"]
    with open(out, "w", encoding="utf-8", newline="") as file:
        file.writelines(text.translate(as_space) + "\n" for text in texts)


def describe(truth):
    component = truth.components()
    removable = len(truth.text) - len(set(component.values()))
    print(f"{len(truth.text):,} documents, {len(truth.copies):,} different texts, {len(truth.pairs):,} pairs of these")
    print(f"{truth.count(truth.copies):,} pairs of documents; greedy in input order removes {len(truth.greedy()):,}, "
          f"components {removable:,}")


def brute(truth, runs=20, run=100):
    """Every pair among texts that lie next to each other in alphabetical order, where near-duplicates are: half of them in
    the order of the texts, half in that of the reversed texts. The truth has no say in which."""
    texts = {}
    with open(f"{truth.folder}/corpus.txt", encoding="utf-8", newline="\n") as corpus:
        for number, line in zip(truth.text, corpus):
            texts.setdefault(number, line.removesuffix("\n"))
    draw, sample = random.Random(12), set()
    for order in [texts.get, lambda number: texts[number][::-1]]:
        numbers = sorted(texts, key=order)
        for start in draw.sample(range(len(numbers) - run), runs // 2):
            sample.update(numbers[start : start + run])
    grams = {n: {texts[n][at : at + 5] for at in range(len(texts[n]) - 4)} or {texts[n]} for n in sample}
    found = set()
    for a, b in itertools.combinations(sorted(sample), 2):
        common = len(grams[a] & grams[b])
        if 5 * common >= 4 * (len(grams[a]) + len(grams[b]) - common):
            found.add((a, b))
    expected = {(a, b) for a, b in truth.pairs if a in sample and b in sample}
    print(f"brute force on {len(sample):,} texts: {len(found):,} pairs, the truth has {len(expected):,}")
    return found == expected


def rows(corpus):
    """Ids and the rows they stand for."""
    return polars.read_parquet(corpus, columns=["id"]).with_row_index("row")


def removals(corpus, output):
    """The rows that our run removed, each with the row that it names as kept."""
    ids = rows(corpus)
    removed = polars.read_parquet(f"{output}/removed/*.parquet", columns=["id", "duplicate_of"])
    removed = removed.join(ids, on="id").join(ids, left_on="duplicate_of", right_on="id", suffix="_kept")
    return removed.select("row", "row_kept")


def ours(truth, corpus, output):
    """Our run names the document each one was removed for: that one must have stayed, and be a true partner."""
    removed = removals(corpus, output)
    gone = set(removed["row"])
    wrong = 0
    for row, kept in removed.iter_rows():
        a, b = truth.text[row], truth.text[kept]
        wrong += kept in gone or (a != b and b not in truth.near[a])
    print(f"{truth.judge(gone)} | {wrong:,}")


def all_pairs(truth, corpus, output):
    """Whether the pairs of a run are exactly the true ones, each once."""
    ids = rows(corpus).with_columns(text=polars.Series(truth.text))
    pairs = polars.read_parquet(f"{output}/pairs/*.parquet", columns=["a", "b"])
    for side in "ab":
        names = {"row": f"row_{side}", "text": f"text_{side}"}
        pairs = pairs.join(ids.rename(names), left_on=side, right_on="id").drop(side)
    low, high = polars.min_horizontal("text_a", "text_b"), polars.max_horizontal("text_a", "text_b")
    near = polars.DataFrame(truth.pairs, schema=["low", "high"], orient="row")
    true = pairs.with_columns(low=low, high=high).join(near, on=["low", "high"], how="semi").height
    true += pairs.filter(polars.col("text_a") == polars.col("text_b")).height
    once = pairs.select(
        polars.min_horizontal("row_a", "row_b").cast(polars.UInt64) * len(truth.text)
        + polars.max_horizontal("row_a", "row_b")
    ).n_unique()
    print(f"{pairs.height:,} pairs, {once:,} different, {true:,} true of {truth.count(truth.copies):,}")


def removed_rows(clusters):
    """The rows that a file of clusters removes."""
    removed = set()
    for line in open(clusters):
        first, *others = map(int, line.split())
        removed.update(others or [first])
    return removed


def clusters_of(corpus, output, out):
    """Each kept row, and behind it what was removed for it."""
    grouped = removals(corpus, output).group_by("row_kept").agg("row").sort("row_kept")
    with open(out, "w") as file:
        file.writelines(" ".join(map(str, [kept, *sorted(gone)])) + "\n" for kept, gone in grouped.iter_rows())


def named(corpus, clusters, out):
    ids = rows(corpus)["id"].to_list()
    with open(clusters) as lines, open(out, "w", encoding="utf-8") as file:
        file.writelines("\t".join(ids[int(row)] for row in line.split()) + "\n" for line in lines)


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    plain = {"export": export, "clusters": clusters_of, "named": named}
    if task in plain:
        plain[task](*arguments)
    elif task == "count":
        print(f"{len(removed_rows(*arguments)):,}")
    else:
        peer = lambda truth, clusters: print(truth.judge(removed_rows(clusters)))
        tasks = {"truth": describe, "brute": brute, "ours": ours, "pairs": all_pairs, "peer": peer}
        if tasks[task](Truth(arguments[0]), *arguments[1:]) is False:
            sys.exit("they differ")
