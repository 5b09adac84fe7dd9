"""Python peers on one corpus: peers.py daft|datasketch|text-dedup CORPUS OUT [pairs]

CORPUS: a text on each line. OUT: a cluster on each line, the numbers of its lines; a line of one number is a document
that the peer drops for no other. With `pairs`, OUT holds the pairs that the peer names, before they are chained to clusters
(text-dedup names only clusters).
"""

import collections
import os
import pickle
import subprocess
import sys
import tempfile


def read(corpus):
    with open(corpus, encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def daft_buckets(texts):
    """MinHash over characters, 9 bands of 13: what daft's guide calls near at 0.8. Words are what spaces part."""
    import daft

    bands, width = 9, 13
    frame = daft.from_pydict({"row": list(range(len(texts))), "text": [" ".join(text) for text in texts]})
    hashes = daft.col("text").minhash(num_hashes=bands * width, ngram_size=5)
    signatures = frame.select("row", hashes.alias("hashes")).to_arrow()
    values = signatures["hashes"].combine_chunks().values.to_numpy().reshape(-1, bands * width)
    for band in range(bands):
        buckets = collections.defaultdict(list)
        for row, key in zip(signatures["row"].to_pylist(), values[:, band * width : (band + 1) * width].copy()):
            buckets[key.tobytes()].append(row)
        yield from (rows for rows in buckets.values() if len(rows) > 1)


def datasketch_buckets(texts):
    """MinHashLSH as its guide has it, over character 5-grams; each document is asked for before it is added."""
    from datasketch import MinHash, MinHashLSH

    lsh = MinHashLSH(threshold=0.8, num_perm=128)
    grams = lambda text: [text[at : at + 5].encode() for at in range(max(1, len(text) - 4))]
    for row, text in enumerate(texts):
        minhash = MinHash(num_perm=128)
        minhash.update_batch(set(grams(text)))
        for earlier in lsh.query(minhash):
            yield [earlier, row]
        lsh.insert(row, minhash)


def text_dedup_clusters(texts):
    """Its minhash command with every default; it filters texts of fewer than five of its words out of the corpus."""
    import datasets

    with tempfile.TemporaryDirectory() as folder:
        datasets.Dataset.from_dict({"row": list(range(len(texts))), "text": texts}).save_to_disk(f"{folder}/corpus")
        command = [sys.executable, "-m", "text_dedup.minhash", "--local", "--path", f"{folder}/corpus", "--column", "text"]
        command += ["--output", f"{folder}/out", "--cache_dir", f"{folder}/cache", "--num_proc", "2", "--debug"]
        subprocess.run(command, check=True, stdout=sys.stderr, env=os.environ | {"HF_HOME": folder})
        kept = set(datasets.load_from_disk(f"{folder}/out")["row"])
        with open(f"{folder}/out/uf.pkl", "rb") as file:
            parents = pickle.load(file)
    parents = getattr(parents, "parent", parents)
    clusters = collections.defaultdict(list)
    for row in range(len(texts)):
        root = row
        while parents.get(root, root) != root:
            root = parents[root]
        clusters[root].append(row)
    for rows in clusters.values():
        if len(rows) > 1 or rows[0] not in kept:
            yield rows


def chained(buckets, count):
    """Connected components, each from its smallest row on."""
    parents = list(range(count))

    def root(row):
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    for first, *others in buckets:
        if not others:
            yield [first]
        for other in others:
            a, b = root(first), root(other)
            parents[max(a, b)] = min(a, b)
    clusters = collections.defaultdict(list)
    for row in range(count):
        clusters[root(row)].append(row)
    yield from (rows for rows in clusters.values() if len(rows) > 1)


if __name__ == "__main__":
    peer, corpus, out, *pairs = sys.argv[1:]
    texts = read(corpus)
    buckets = {"daft": daft_buckets, "datasketch": datasketch_buckets, "text-dedup": text_dedup_clusters}[peer](texts)
    with open(out, "w") as file:
        for rows in buckets if pairs else chained(buckets, len(texts)):
            file.write(" ".join(map(str, rows)) + "\n")
