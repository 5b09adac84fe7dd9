"""Judges `auto` by its own similarity, stated again here after docs/design/0013-auto.md and 0037-cleaning-of-auto.md, and applied to every pair.

    auto.py sample CORPUS.parquet FOLDER    up to 5,000 documents of each source, a file for each
    auto.py judge FOLDER OUTPUTS            what dedup-job made of each file with --pairs all, in OUTPUTS/SOURCE
    auto.py gold CORPUS.parquet PAIRS.tsv   labelled pairs, ranked by the similarity
"""

import collections
import glob
import os
import sys
import unicodedata

import numpy
import polars
import regex

DOCUMENTS = 5000
THRESHOLD = 750_000  # millionths
FEW_BIGRAMS = 40
PARTICLES = regex.compile("[的了啊呀啦吧呢哦哇咯]+")

MARKUP = regex.compile(r"<[a-z/!][^<>]{0,700}>|&nbsp;?|&(?:[a-z]{2,8}|#[0-9]{1,7});")
ADDRESSES = regex.compile(
    r"https?:[!-~]*|#[^#\n]{1,40}#|@[\p{Alphabetic}\p{N}_-]{1,30}|\[[\p{Alphabetic}\p{N}]{1,8}\]"
)
WORDS = regex.compile(r"[\p{Alphabetic}\p{N}]+")
SPACED = r"[[\u0000-\u058f\u1e00-\u1fff]&&[\p{Alphabetic}\p{N}]]"
UNIT = regex.compile(rf"{SPACED}+|[^ ]", regex.V1)
BETWEEN = regex.compile(rf"(?<={SPACED})\n(?={SPACED})", regex.V1)


def letters(text):
    """Letters and digits alone; where something stood between two of a script with spaces, a space."""
    return joined("\n".join(WORDS.findall(text)))


def joined(lines):
    return BETWEEN.sub(" ", lines).replace("\n", "")


def cleaned(text):
    folded = "".join(map(str.lower, unicodedata.normalize("NFKC", text)))
    plain = MARKUP.sub(" ", folded)
    out = letters(ADDRESSES.sub(" ", plain))
    if len(UNIT.findall(out)) < 2:
        out = letters(plain) or "".join(folded.split())
    bare = joined(PARTICLES.sub("\n", out))
    return bare if len(UNIT.findall(bare)) > 1 else out


def grams(items, width):
    return {tuple(items[at : at + width]) for at in range(max(1, len(items) - width + 1))}


class Sets:
    """A set for each document, and how many members any one shares with each of all."""

    def __init__(self, sets):
        numbers = collections.defaultdict(lambda: len(numbers))
        self.sets = [[numbers[gram] for gram in members] for members in sets]
        self.sizes = numpy.array([len(members) for members in sets])
        holders = [[] for _ in numbers]
        for document, members in enumerate(self.sets):
            for gram in members:
                holders[gram].append(document)
        self.holders = [numpy.array(documents) for documents in holders]

    def jaccard(self, document):
        """Millionths, with every document."""
        holders = numpy.concatenate([self.holders[gram] for gram in self.sets[document]])
        shared = numpy.bincount(holders, minlength=len(self.sets))
        return shared * 1_000_000 // (self.sizes[document] + self.sizes - shared)


class Auto:
    """The similarity of every pair of some texts."""

    def __init__(self, texts):
        clean = [cleaned(text) for text in texts]
        self.bigrams = Sets([grams(UNIT.findall(text), 2) for text in clean])
        self.fivegrams = Sets([grams(text, 5) for text in clean])

        self.short = self.bigrams.sizes < FEW_BIGRAMS

    def similarity(self, document):
        """With every document; of a long one with long ones alone, since short ones ask for themselves."""
        if self.short[document]:
            return self.bigrams.jaccard(document)
        return numpy.where(self.short, 0, self.fivegrams.jaccard(document))

    def pairs(self):
        """(low, high): similarity, of every pair that matches."""
        found = {}
        for one in range(len(self.short)):
            similarity = self.similarity(one)
            for other in map(int, numpy.flatnonzero(similarity >= THRESHOLD)):
                if other != one:
                    found[min(one, other), max(one, other)] = int(similarity[other])
        return found

    def of_two(self):
        """The similarity of the only two."""
        return max(int(self.similarity(0)[1]), int(self.similarity(1)[0]))


def sample(corpus, folder):
    documents = polars.read_parquet(corpus).filter(polars.col("source").is_not_null())
    for (source,), part in documents.group_by("source", maintain_order=True):
        part = part.sample(min(DOCUMENTS, part.height), seed=13)
        part.write_parquet(f"{folder}/{source}.parquet")


def judge(folder, outputs):
    """The sums over all sources; names each source whose pairs are not exactly those of brute force; returns whether none is."""
    sums, same = collections.Counter(), True
    for file in sorted(glob.glob(f"{folder}/*.parquet")):
        documents = polars.read_parquet(file)
        row = {document: row for row, document in enumerate(documents["id"])}
        true = Auto(documents["text"]).pairs()
        output = f"{outputs}/{os.path.basename(file).removesuffix('.parquet')}"
        found = {}
        for a, b, similarity in polars.read_parquet(f"{output}/pairs/*.parquet")["a", "b", "similarity"].iter_rows():
            found[min(row[a], row[b]), max(row[a], row[b])] = round(similarity * 1e6)
        if found != true:
            same = False
            differ = sorted(found.items() ^ true.items())
            print(f"{file}: {len(found):,} pairs for {len(true):,}, {len(differ):,} differ: {differ[:3]}", file=sys.stderr)
        removed = {row[document] for document in removed_ids(output)}
        sums["documents"] += documents.height
        sums["true"] += len(true)
        sums["missing"] += len(true.keys() - found.keys())
        sums["extra"] += len(found.keys() - true.keys())
        sums["removed"] += len(removed)
        with_kept = {low if low in removed else high for low, high in true if (low in removed) != (high in removed)}
        sums["unsound"] += len(removed - with_kept)
        sums["left"] += sum(low not in removed and high not in removed for low, high in true)
    left = 1000 * sums["left"] / max(1, sums["removed"])
    print(" | ".join(f"{sums[name]:,}" for name in ["documents", "true", "missing", "extra", "removed", "unsound"]), end="")
    print(f" | {left:.2f}")
    return same


def removed_ids(output):
    files = glob.glob(f"{output}/removed/*.parquet")
    return polars.read_parquet(files, columns=["id"])["id"].to_list() if files else []


def gold(corpus, labels):
    """Average precision (equal similarities share a rank), the best precision at a recall of .75, and both at the threshold."""
    text = dict(polars.read_parquet(corpus, columns=["id", "text"]).iter_rows())
    pairs = [line.split("\t")[:3] for line in open(labels, encoding="utf-8")]
    scores = sorted(((Auto([text[a], text[b]]).of_two(), label.strip() == "1") for a, b, label in pairs), reverse=True)
    positives = sum(same for _, same in scores)
    average, before, best, at_threshold = 0, 0, 0, ""
    for least in sorted({score for score, _ in scores}, reverse=True):
        taken = [same for score, same in scores if score >= least]
        precision, recall = sum(taken) / len(taken), sum(taken) / positives
        average += precision * (sum(taken) - before) / positives
        before = sum(taken)
        best = max(best, precision if recall >= 0.75 else 0)
        if least >= THRESHOLD:
            at_threshold = f"precision {precision:.3f}, recall {recall:.3f}"
    print(f"{len(pairs)} pairs, {positives} the same: average precision {average:.3f}, precision {best:.3f} at a recall of .75 or more; "
          f"at the threshold {at_threshold}")


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    if {"sample": sample, "judge": judge, "gold": gold}[task](*arguments) is False:
        sys.exit("they differ")
