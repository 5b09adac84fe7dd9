"""Judges `auto` by its own similarity, stated again here after docs/design/0013-auto.md and 0037-cleaning-of-auto.md, and applied to every pair.

    auto.py sample CORPUS.parquet FOLDER    up to 5,000 documents of each source, a file for each
    auto.py judge FOLDER OUTPUTS            what dedup-job made of each file with --pairs all, in OUTPUTS/SOURCE
    auto.py gold CORPUS.parquet PAIRS.tsv   labelled pairs, ranked by the similarity
    auto.py cases operators/tests/auto.tsv  works out the cases of that file again
"""

import collections
import glob
import os
import sys
import unicodedata

import numpy
import polars
import regex
import xxhash

DOCUMENTS = 5000
SHORT, LONG = 580_000, 550_000  # millionths
FEW_BIGRAMS = 40
LARGEST_CORRECTED = 1024
TOPIC_FEATURES, TOPIC_SEED = 3, 0x746F70696373
PARTICLES = regex.compile("[的了啊呀啦吧呢哦哇咯]+")

MARKUP = regex.compile(r"<[a-z/!][^<>]{0,700}>|&nbsp;?|&(?:[a-z]{2,8}|#[0-9]{1,7});")
ADDRESSES = regex.compile(
    r"https?:[!-~]*|#[^#\n]{1,40}#|@[\p{Alphabetic}\p{N}_-]{1,30}|\[[\p{Alphabetic}\p{N}]{1,8}\]"
    r"|(?<![0-9a-z])(?:o(?=[^\0-\x7f])(?:网页链接|[^#\n。?!]{1,40})|l(?=[^\0-\x7f])[^\s#]{1,20}?的(?:微博|秒拍)视频)"
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
    """The body, and behind it the topics that were cut out, each behind a mark."""
    folded = "".join(map(str.lower, unicodedata.normalize("NFKC", text)))
    plain = MARKUP.sub(" ", folded)
    out, topics = letters(ADDRESSES.sub(" ", plain)), ""
    if len(UNIT.findall(out)) < 2:
        out = letters(plain) or "".join(folded.split())
    else:
        cut = [letters(address) for address in ADDRESSES.findall(plain) if address.startswith("#")]
        topics = "".join("#" + topic for topic in cut if topic)
    bare = joined(PARTICLES.sub("\n", out))
    return (bare if len(UNIT.findall(bare)) > 1 else out) + topics


def grams(items, width):
    return {tuple(items[at : at + width]) for at in range(max(1, len(items) - width + 1))}


def word_hash(word):
    data = word.encode()
    return xxhash.xxh3_64_intdigest(data if len(data) > 16 else data.ljust(16, b"\0"))


def feature(gram):
    """The program's hash of a bigram of units, or of a text with one unit."""
    if len(gram) < 2:
        return word_hash("".join(gram))
    first, second = (word_hash(unit) if regex.fullmatch(rf"{SPACED}+", unit, regex.V1) else ord(unit) for unit in gram)
    return xxhash.xxh3_64_intdigest((second << 64 | first).to_bytes(16, "little"))


def drawn(gram):
    """The place of a bigram among those that stand for the topics."""
    return xxhash.xxh3_64_intdigest((feature(gram) ^ TOPIC_SEED).to_bytes(8, "little"))


def bigrams(text):
    """Bigrams of units of the body, and three of the topics."""
    body, *topics = text.split("#")
    of_topics = set().union(*(grams(UNIT.findall(topic), 2) for topic in topics))
    return grams(UNIT.findall(body), 2) | set(sorted(of_topics, key=drawn)[:TOPIC_FEATURES])


def corrected(shared, a, b):
    """Millionths of Jaccard similarity, of which each difference counts 1 + 1 / n times; for arrays too."""
    smaller = numpy.minimum(numpy.minimum(a, b), LARGEST_CORRECTED).astype(numpy.int64)
    whole = (a + b - shared) * smaller
    return numpy.maximum(0, whole - (a + b - 2 * shared) * (smaller + 1)) * 1_000_000 // whole


def revised(shared, a, b):
    """Millionths of containment, with a quarter of the larger one."""
    return 4 * shared * 1_000_000 // numpy.maximum(4 * numpy.minimum(a, b), numpy.maximum(a, b))


def numbers(a, b):
    """How many features the numbers of two bodies add to each, and whether they are of one template."""
    a, b = (collections.Counter(regex.findall("[0-9]+", text.split("#")[0])) for text in (a, b))
    fewer = min(a.total(), b.total())
    lacked = fewer - (a & b).total()
    return 3 * lacked, lacked >= 3 and 3 * lacked > fewer


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

    def similarity(self, document, measure):
        """Millionths, with every document, if no number differs."""
        return measure(self.shared(document), self.sizes[document], self.sizes)

    def shared(self, document):
        """Number of members shared with every document."""
        holders = numpy.concatenate([self.holders[gram] for gram in self.sets[document]])
        return numpy.bincount(holders, minlength=len(self.sets))


class Auto:
    """The similarity of every pair of some texts."""

    def __init__(self, texts, long=corrected, least_of_long=LONG):
        self.clean = [cleaned(text) for text in texts]
        self.bigrams = Sets([bigrams(text) for text in self.clean])
        self.fivegrams = Sets([grams(text.split("#")[0], 5) for text in self.clean])
        self.short = self.bigrams.sizes < FEW_BIGRAMS
        self.long, self.least_of_long = long, least_of_long

    def measured(self, document):
        """The sets, the measure and the least similarity of a match of a document with documents that are not shorter."""
        if self.short[document]:
            return self.bigrams, corrected, SHORT
        return self.fivegrams, self.long, self.least_of_long

    def of_pair(self, one, other):
        """The similarity of two, and whether they match."""
        sets, measure, least = self.measured(one if self.short[one] else other)
        more, template = numbers(self.clean[one], self.clean[other])
        shared = len(set(sets.sets[one]) & set(sets.sets[other]))
        similarity = int(measure(numpy.int64(shared), sets.sizes[one] + more, sets.sizes[other] + more))
        return similarity, similarity >= least and not template

    def matches(self, document):
        """The documents that match, each with its similarity; of a long one long ones alone, since short ones ask for themselves."""
        sets, measure, least = self.measured(document)
        near = sets.similarity(document, measure) >= least
        if not self.short[document]:
            near &= ~self.short
        for other in map(int, numpy.flatnonzero(near)):
            if other != document:
                similarity, match = self.of_pair(document, other)
                if match:
                    yield other, similarity

    def pairs(self):
        """(low, high): similarity, of every pair that matches."""
        return {(min(one, other), max(one, other)): similarity for one in range(len(self.short)) for other, similarity in self.matches(one)}

    def of_two(self):
        """The similarity of the only two, 0 for texts of one template; and whether they match."""
        similarity, match = self.of_pair(0, 1)
        return 0 if numbers(*self.clean)[1] else similarity, match


def cases(file):
    """Works the cases of a file out again: two texts, both cleaned, and what `auto` and `auto:revisions` make of them."""
    escapes = {"n": "\n", "t": "\t"}
    unescape = lambda text: regex.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text)
    escape = lambda text: text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    lines = open(file, encoding="utf-8").read().split("\n")
    with open(file, "w", encoding="utf-8") as out:
        for line in filter(None, lines):
            if not line.startswith("# "):
                texts = [unescape(field) for field in line.split("\t")[:2]]
                both = [Auto(texts), Auto(texts, revised, 400_000)]
                results = [str(int(number)) for of in both for number in of.of_two()]
                line = "\t".join([escape(text) for text in texts + both[0].clean] + results)
            out.write(line + "\n")


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
    scores = sorted(((*Auto([text[a], text[b]]).of_two(), label.strip() == "1") for a, b, label in pairs), reverse=True)
    matches = [same for _, match, same in scores if match]
    scores = [(score, same) for score, _, same in scores]
    positives = sum(same for _, same in scores)
    average, before, best = 0, 0, 0
    for least in sorted({score for score, _ in scores}, reverse=True):
        taken = [same for score, same in scores if score >= least]
        precision, recall = sum(taken) / len(taken), sum(taken) / positives
        average += precision * (sum(taken) - before) / positives
        before = sum(taken)
        best = max(best, precision if recall >= 0.75 else 0)
    print(f"{len(pairs)} pairs, {positives} the same: average precision {average:.3f}, precision {best:.3f} at a recall of .75 or more; "
          f"by the thresholds precision {sum(matches) / len(matches):.3f}, recall {sum(matches) / positives:.3f}")


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    if {"sample": sample, "judge": judge, "gold": gold, "cases": cases}[task](*arguments) is False:
        sys.exit("they differ")
