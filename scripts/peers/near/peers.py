"""Python peers on one corpus: peers.py daft|datasketch|text-dedup|datatrove|spark CORPUS OUT [pairs]

CORPUS: a text on each line. OUT: a cluster on each line, the numbers of its lines; a line of one number is a document
that the peer drops for no other. With `pairs`, OUT holds the pairs that the peer names, before they are chained to clusters
(text-dedup and datatrove name only clusters). The first row of a cluster is kept.
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
        if subprocess.run(command, stdout=sys.stderr, env=os.environ | {"HF_HOME": folder}).returncode:
            sys.exit(1)  # The command has said why.
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
            yield sorted(rows, key=lambda row: row not in kept)


def datatrove_clusters(texts):
    """Its four MinHash stages in two processes, 14 buckets of 8; characters are its words, the rest is its default. The row that
    it keeps comes first."""
    import json

    import numpy
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    from datatrove.utils.word_tokenizers import WordTokenizer

    class Characters(WordTokenizer):
        def word_tokenize(self, text):
            return list(text)

        def sent_tokenize(self, text):
            return [text]

        def span_tokenize(self, text):
            return [(0, len(text))]

    config, tasks = MinhashConfig(), 2
    rows = [row for row, text in enumerate(texts) if text]  # Its reader skips empty texts.
    files = [rows[task * len(rows) // tasks : (task + 1) * len(rows) // tasks] for task in range(tasks)]
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/corpus")
        for task, file_rows in enumerate(files):
            with open(f"{folder}/corpus/{task}.jsonl", "w", encoding="utf-8") as file:
                file.writelines(json.dumps({"id": str(row), "text": texts[row]}) + "\n" for row in file_rows)
        reader = JsonlReader(f"{folder}/corpus")
        stages = [
            ([reader, MinhashDedupSignature(f"{folder}/signatures", config, Characters())], tasks),
            ([MinhashDedupBuckets(f"{folder}/signatures", f"{folder}/buckets", config=config)], config.num_buckets),
            ([MinhashDedupCluster(f"{folder}/buckets", f"{folder}/clusters", config, save_cluster_id=True)], 1),
            ([reader, MinhashDedupFilter(f"{folder}/clusters"), JsonlWriter(f"{folder}/kept", compression=None)], tasks),
        ]
        for number, (stage, stage_tasks) in enumerate(stages):
            LocalPipelineExecutor(stage, stage_tasks, workers=2, logging_dir=f"{folder}/logs/{number}").run()
        clusters = collections.defaultdict(list)
        for task, file_rows in enumerate(files):
            numbers = lambda kind: numpy.fromfile(path, "<u4") if os.path.exists(path := f"{folder}/clusters/{task:06}.{kind}") else []
            removed = set(numbers("remove"))
            for place, cluster in numpy.reshape(numbers("clusters"), (-1, 2)).astype(int):
                clusters[cluster].insert(len(clusters[cluster]) if place in removed else 0, file_rows[place])
    yield from clusters.values()


def spark_buckets(texts):
    """MLlib's MinHashLSH with three tables over hashed character 5-grams, and its join of what is at least 0.8 alike."""
    from pyspark.ml.feature import HashingTF, MinHashLSH
    from pyspark.sql import SparkSession

    settings = {"driver.memory": "6g", "driver.maxResultSize": "2g", "ui.enabled": "false", "driver.host": "127.0.0.1"}
    settings |= {"ui.showConsoleProgress": "false", "sql.shuffle.partitions": "16"}
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[2]").config("spark.local.dir", folder)
        session = builder.config(map={f"spark.{name}": value for name, value in settings.items()}).getOrCreate()
        write_rows(texts, f"{folder}/corpus.parquet")
        grams = "transform(sequence(1, greatest(1, length(text) - 4)), at -> substring(text, at, 5)) as grams"
        corpus = session.read.parquet(f"{folder}/corpus.parquet").selectExpr("row", grams)
        corpus = HashingTF(inputCol="grams", outputCol="vector", binary=True).transform(corpus).drop("grams")
        model = MinHashLSH(inputCol="vector", outputCol="hashes", numHashTables=3, seed=1).fit(corpus)
        pairs = model.approxSimilarityJoin(corpus, corpus, 0.2 + 1e-9, "distance")
        pairs = pairs.selectExpr("datasetA.row as a", "datasetB.row as b").where("a < b").toArrow()
        session.stop()
    yield from zip(pairs["a"].to_pylist(), pairs["b"].to_pylist())


def write_rows(texts, path):
    """The texts with their numbers, in several row groups, so that both cores read."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"row": pyarrow.array(range(len(texts))), "text": texts})
    pyarrow.parquet.write_table(table, path, row_group_size=max(1, len(texts) // 8))


def chained(buckets, count):
    """Connected components, each from its smallest row on."""
    parents = list(range(count))

    def root(row):
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    for first, *others in buckets:
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
    chain = {"daft": daft_buckets, "datasketch": datasketch_buckets, "spark": spark_buckets}
    whole = {"text-dedup": text_dedup_clusters, "datatrove": datatrove_clusters}
    if peer in whole:
        clusters = whole[peer](texts)
    else:
        clusters = chain[peer](texts) if pairs else chained(chain[peer](texts), len(texts))
    with open(out, "w") as file:
        file.writelines(" ".join(map(str, rows)) + "\n" for rows in clusters)
