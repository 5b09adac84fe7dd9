"""Online indexes of others: peers.py faiss DOCUMENTS | peers.py datasketch DOCUMENTS CORPUS REDIS_PORT

faiss: evenly spread fingerprints of 64 bits, IndexBinaryMultiHash of four hashes of 16 bits, all within three bits.
datasketch: the texts of a corpus of JSON lines, MinHashLSH in Redis; each is asked about before it is added.
Seconds are CPU seconds; those of Redis are added.
"""

import json
import pathlib
import resource
import statistics
import sys
import time

QUERIES = 2_000


def report(name, value):
    print(f"{name:<44} {value}", flush=True)


def times_of(queries, ask):
    times, begin = [], time.process_time()
    for query in queries:
        start = time.perf_counter()
        ask(query)
        times.append(time.perf_counter() - start)
    cpu = (time.process_time() - begin) / len(times)
    return f"p50 {statistics.median(times) * 1e6:.1f} µs, {cpu * 1e6:.1f} CPU µs"


def faiss_index(documents):
    import faiss
    import numpy

    faiss.omp_set_num_threads(1)
    words = numpy.random.default_rng(1).integers(0, 256, size=(documents, 8), dtype=numpy.uint8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    begin = time.process_time()
    for at in range(0, documents, 1000):
        index.add(words[at : at + 1000])
    report("insert in memory", f"{(time.process_time() - begin) * 1e6 / documents:.2f} CPU µs a document")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    report("memory", f"{memory * 1024 / documents:.1f} bytes a document")
    near = words[:QUERIES].copy()
    near[:, 0] ^= 1
    near[:, 4] ^= 1
    absent = numpy.random.default_rng(2).integers(0, 256, size=(QUERIES, 8), dtype=numpy.uint8)
    for name, asked in (("near", near), ("absent", absent)):
        rows = [asked[at : at + 1] for at in range(QUERIES)]
        found = []
        # A radius of 4 takes distances below it.
        took = times_of(rows, lambda row: found.append(len(index.range_search(row, 4)[2])))
        report(f"query, {name}", f"{took}, {sum(found)} found")


def redis_seconds(port):
    import redis

    cpu = redis.Redis(port=port).info("cpu")
    return cpu["used_cpu_user"] + cpu["used_cpu_sys"]


def datasketch_index(documents, corpus, port):
    from datasketch import MinHash, MinHashLSH
    import redis

    storage = {"type": "redis", "basename": b"index", "redis": {"host": "127.0.0.1", "port": port}}
    lsh = MinHashLSH(threshold=0.8, num_perm=128, storage_config=storage)

    def minhash(text):
        of = MinHash(num_perm=128)
        of.update_batch({text[at : at + 5].encode() for at in range(max(1, len(text) - 4))})
        return of

    with pathlib.Path(corpus).open(encoding="utf-8") as lines:
        docs = [json.loads(line) for _, line in zip(range(documents), lines)]
    begin, begin_redis = time.process_time(), redis_seconds(port)
    for doc in docs:
        lsh.insert(doc["id"], minhash(doc["text"]), check_duplication=False)
    cpu = time.process_time() - begin + redis_seconds(port) - begin_redis
    report("insert, mapping included", f"{cpu * 1e6 / documents:.0f} CPU µs a document")
    memory = redis.Redis(port=port).info("memory")["used_memory"]
    report("memory of Redis", f"{memory / documents:.0f} bytes a document")
    begin_redis = redis_seconds(port)
    took = times_of(docs[:QUERIES], lambda doc: lsh.query(minhash(doc["text"])))
    more = (redis_seconds(port) - begin_redis) * 1e6 / QUERIES
    report("query, mapping included", f"{took} and {more:.1f} of Redis")


if sys.argv[1] == "faiss":
    faiss_index(int(sys.argv[2]))
else:
    datasketch_index(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
