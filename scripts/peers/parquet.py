"""What other readers of Parquet make of our files: pyarrow and DuckDB.

    parquet.py write FOLDER            one corpus for each codec and kind of text column
    parquet.py compare INPUT OUTPUT    kept/ and removed/ of OUTPUT against INPUT
    parquet.py rate FILE               CPU seconds in which pyarrow and polars read id and text
"""

import datetime
import decimal
import glob
import resource
import sys

import pyarrow as pa
import pyarrow.parquet as pq

CODECS = ["none", "snappy", "gzip", "zstd", "brotli", "lz4"]
TEXTS = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "string_view": pa.string_view(),
}
ROWS = 300
REMOVAL = ["duplicate_of", "similarity", "cluster", "reason"]


def corpus(text_type):
    """Rows of which every fifth repeats the text of the one before, and columns of all kinds."""
    rows = range(ROWS)
    texts = [f"第{row - (row % 5 == 4)}篇，讲的是第{row - (row % 5 == 4)}件事" for row in rows]
    if pa.types.is_binary(text_type) or pa.types.is_large_binary(text_type):
        texts = [text.encode() for text in texts]
    if pa.types.is_dictionary(text_type):
        text = pa.array(texts).dictionary_encode()
    else:
        text = pa.array(texts, text_type)
    sometimes = lambda row, value: None if row % 7 == 3 else value
    day = datetime.date(2026, 11, 21)
    moment = datetime.datetime(2026, 11, 21, 8, 30, 0, 123456)
    author = pa.struct([("name", pa.string()), ("tags", pa.list_(pa.string()))])
    columns = {
        "id": pa.array([f"d{row:04}" for row in rows]),
        "text": text,
        "number": pa.array([sometimes(row, row * 7919) for row in rows], pa.int64()),
        "small": pa.array([row % 200 for row in rows], pa.uint8()),
        "unsigned": pa.array([2**64 - 1 - row for row in rows], pa.uint64()),
        "flag": pa.array([sometimes(row, row % 2 == 0) for row in rows]),
        "real": pa.array([row / 3 for row in rows], pa.float64()),
        "half": pa.array([sometimes(row, row / 2) for row in rows], pa.float32()),
        "price": pa.array([decimal.Decimal(row) / 100 for row in rows], pa.decimal128(20, 4)),
        "day": pa.array([day + datetime.timedelta(days=row) for row in rows], pa.date32()),
        "moment": pa.array([moment] * ROWS, pa.timestamp("us", tz="Asia/Shanghai")),
        "nanos": pa.array([row for row in rows], pa.timestamp("ns")),
        "time": pa.array([sometimes(row, moment.time()) for row in rows], pa.time64("us")),
        "key": pa.array([bytes([row % 256] * 16) for row in rows], pa.binary(16)),
        "empty": pa.nulls(ROWS),
        "source": pa.array([["weibo", "news"][row % 2] for row in rows]).dictionary_encode(),
        "words": pa.array([sometimes(row, ["字"] * (row % 4)) for row in rows], pa.list_(pa.string())),
        "vector": pa.array([[row / 7, None, 1.0] for row in rows], pa.list_(pa.float32(), 3)),
        "nested": pa.array(
            [sometimes(row, [[row], [], None, [row, None]]) for row in rows], pa.list_(pa.list_(pa.int32()))
        ),
        "author": pa.array(
            [sometimes(row, {"name": f"a{row}", "tags": ["x", None][: row % 3]}) for row in rows], author
        ),
        "scores": pa.array(
            [sometimes(row, [("a", row), ("b", None)]) for row in rows], pa.map_(pa.string(), pa.int64())
        ),
        "te.xt 正文": pa.array([None if row % 2 else "x" for row in rows], pa.string()),
    }
    fields = [pa.field(name, column.type, metadata={"about": name}) for name, column in columns.items()]
    schema = pa.schema(fields, metadata={"made by": "pyarrow", "语言": "中文"})
    return pa.table(list(columns.values()), schema=schema)


def write(folder):
    for codec in CODECS:
        table = corpus(TEXTS["string"])
        version = "2.0" if codec == "zstd" else "1.0"
        checksums = codec in ("zstd", "snappy")
        pq.write_table(
            table,
            f"{folder}/codec-{codec}.parquet",
            compression=codec,
            row_group_size=70,
            data_page_version=version,
            write_page_checksum=checksums,
        )
    for name, text_type in TEXTS.items():
        pq.write_table(corpus(text_type), f"{folder}/text-{name}.parquet", row_group_size=90)


def compare(source, output):
    compare_with_pyarrow(source, output)
    compare_with_duckdb(source, output)


def values(column):
    """As Python has them; nanoseconds, which it has not, as numbers."""
    if column.type == pa.timestamp("ns"):
        column = column.cast(pa.int64())
    return column.to_pylist()


def parts(output, folder):
    return sorted(glob.glob(f"{output}/{folder}/*.parquet"))


def compare_with_pyarrow(source, output):
    table = pq.read_table(source)
    expected = {folder: [] for folder in ("kept", "removed")}
    for row, place in enumerate("kept" if row % 5 != 4 else "removed" for row in range(ROWS)):
        expected[place].append(row)
    for folder, rows in expected.items():
        read = pa.concat_tables([pq.read_table(part) for part in parts(output, folder)])
        if folder == "removed":
            assert read.schema.names[-4:] == REMOVAL, read.schema
            assert read["duplicate_of"].to_pylist() == [f"d{row - 1:04}" for row in rows]
            read = read.drop_columns(REMOVAL)
        assert read.schema.equals(table.schema, check_metadata=True), f"{read.schema}\n{table.schema}"
        assert read.num_rows == len(rows), (folder, read.num_rows)
        for name in table.schema.names:
            wanted = values(table[name])
            assert values(read[name]) == [wanted[row] for row in rows], (folder, name)
    whole = pq.ParquetFile(source)
    for part in parts(output, "kept"):
        kept = pq.ParquetFile(part)
        assert kept.schema.equals(whole.schema), f"{kept.schema}\n{whole.schema}"
        assert kept.metadata.metadata == whole.metadata.metadata
        for column in range(whole.metadata.num_columns):
            codecs = [file.metadata.row_group(0).column(column).compression for file in (kept, whole)]
            assert codecs[0] == codecs[1], codecs


def compare_with_duckdb(source, output):
    import duckdb

    # A moment in a time zone would need one more package in Python, so it is compared as text.
    def rows(files, where, drop=()):
        drop = f"exclude ({', '.join(drop)})" if drop else ""
        columns = f"* {drop} replace (cast(moment as varchar) as moment)"
        query = f"select {columns} from read_parquet(?) where {where} order by id"
        return duckdb.execute(query, [files]).fetchall()

    fifth = "cast(substr(cast(id as varchar), 2) as int) % 5 = 4"
    kept = rows(parts(output, "kept"), "true")
    assert kept == rows([source], f"not ({fifth})") and len(kept) == ROWS * 4 // 5
    removed = rows(parts(output, "removed"), "true", REMOVAL)
    assert removed == rows([source], fifth) and len(removed) == ROWS // 5


def rate(file):
    import polars

    def timed(name, read):
        for run in (1, 2, 3):
            before = resource.getrusage(resource.RUSAGE_SELF)
            text_bytes = read()
            after = resource.getrusage(resource.RUSAGE_SELF)
            seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            print(f"{name:<58} {seconds:>7.2f} s   {text_bytes / 1e6 / seconds:.0f} MB/s, run {run}")

    def with_pyarrow(columns):
        table = pq.ParquetFile(file)
        batches = table.iter_batches(batch_size=8192, columns=columns, use_threads=False)
        return sum(batch.column("text").nbytes for batch in batches)

    pa.set_cpu_count(1)
    timed(f"pyarrow {pa.__version__}, id and text, one thread", lambda: with_pyarrow(["id", "text"]))
    timed(f"pyarrow {pa.__version__}, all columns, one thread", lambda: with_pyarrow(None))
    read = lambda: polars.read_parquet(file, columns=["id", "text"])["text"].str.len_bytes().sum()
    timed(f"polars {polars.__version__}, id and text, {polars.thread_pool_size()} threads", read)


if __name__ == "__main__":
    {"write": write, "compare": compare, "rate": rate}[sys.argv[1]](*sys.argv[2:])
