"""Parquet, CSV and JSON as polars, fastparquet and pandas write them."""

import datetime
import decimal

import fastparquet
import numpy
import pandas as pd
import polars as pl

from cases import ROWS, Suite, cycle, ids, line_texts, texts

POLARS = {
    **{
        str(kind): (kind, [0, 1, 100])
        for kind in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.UInt128)
    },
    **{str(kind): (kind, [0.0, -0.0, 1.5, float("nan"), float("inf")]) for kind in (pl.Float16, pl.Float32, pl.Float64)},
    "Decimal 38 10": (pl.Decimal(38, 10), [decimal.Decimal("-1.5")]),
    "Decimal 5 2": (pl.Decimal(5, 2), [decimal.Decimal("999.99")]),
    **{
        f"Datetime {unit} {zone}": (pl.Datetime(unit, zone), [0, -1, 1709251199999])
        for unit in ("ms", "us", "ns")
        for zone in (None, "UTC", "Asia/Shanghai")
    },
    **{f"Duration {unit}": (pl.Duration(unit), [0, -1, 86400000]) for unit in ("ms", "us", "ns")},
    "Date": (pl.Date, [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "Time": (pl.Time, [datetime.time(23, 59, 59, 999999)]),
    "Boolean": (pl.Boolean, [True, False]),
    "String": (pl.String, ["", "字", "x" * 3000]),
    "Binary": (pl.Binary, [b"", b"\0\xff"]),
    "Null": (pl.Null, []),
    "Categorical": (pl.Categorical, ["one", "two"]),
    "Enum": (pl.Enum(["one", "two"]), ["one", "two"]),
    "List": (pl.List(pl.Int32), [[], [1, None]]),
    "List of lists": (pl.List(pl.List(pl.String)), [[], [[]], [["a", None], None]]),
    "List of categories": (pl.List(pl.Categorical), [["one"], []]),
    "Array": (pl.Array(pl.Float32, 2), [[1.0, None]]),
    "Array of arrays": (pl.Array(pl.Array(pl.Int8, 2), 1), [[[1, 2]]]),
    "Struct": (pl.Struct({"a": pl.Int8, "b": pl.List(pl.Struct({"c": pl.Date}))}), [{"a": 1, "b": [{"c": None}]}, {"a": None, "b": None}]),
    "Struct of decimals": (pl.Struct({"d": pl.Decimal(10, 1)}), [{"d": decimal.Decimal("0.1")}]),
}


def frame(columns, words=texts):
    """A frame of polars with id, text and the columns."""
    further = [pl.Series(name, cycle(values), dtype=kind) for name, (kind, values) in columns.items()]
    return pl.DataFrame([pl.Series("id", ids()), pl.Series("text", words()), *further])


def polars_suites(folder):
    """Yields what polars writes: Parquet, and the rest."""
    suite = Suite("polars Parquet", pl.__version__, folder)

    def add(name, rows, **options):
        suite.add(name, ".parquet", "parquet", lambda path: rows.write_parquet(path, **options))

    for name, column in POLARS.items():
        suite.add(f"type {name}", ".parquet", "parquet", lambda path: frame({"value": column}).write_parquet(path))
    everything = frame({name: column for name, column in POLARS.items() if "128" not in name})
    for codec in ("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"):
        add(f"all types, {codec}", everything, compression=codec)
    for name, options in {
        "no statistics": {"statistics": False},
        "full statistics": {"statistics": "full"},
        "7 rows a group": {"row_group_size": 7},
        "small pages": {"data_page_size": 1},
        "key-values": {"metadata": {"k": "值"}},
        "by pyarrow": {"use_pyarrow": True},
    }.items():
        add(f"all types, {name}", everything, **options)
    add("no rows", everything.clear())
    add("odd names", frame({name: POLARS["String"] for name in ("a.b", "with space", "名字", "`tick`", 'quo"te')}))
    add("the text is a category", frame({}).with_columns(pl.col("text").cast(pl.Categorical)))
    add("the text is bytes", frame({}).with_columns(pl.col("text").cast(pl.Binary)))
    suite.add("streamed", ".parquet", "parquet", lambda path: everything.lazy().sink_parquet(path, maintain_order=True))
    yield suite
    suite = Suite("polars text", pl.__version__, folder)
    rows = frame({"n": POLARS["Int8"], "f": POLARS["Float64"], "s": POLARS["String"]}, line_texts)
    for name, options, dialect in (
        ("default", {}, {}),
        ("all quoted", {"quote_style": "always"}, {}),
        ("quoted unless a number", {"quote_style": "non_numeric"}, {}),
        ("CRLF", {"line_terminator": "\r\n"}, {}),
        ("byte order mark", {"include_bom": True}, {}),
        ("null values", {"null_value": "NULL"}, {}),
        ("semicolon", {"separator": ";"}, {"delimiter": ";"}),
        ("single quotes", {"quote_char": "'"}, {"quotechar": "'"}),
        ("no header", {"include_header": False}, {}),
    ):
        suite.add(f"CSV, {name}", ".csv", "csv", lambda path: rows.write_csv(path, **options), dialect=dialect)
    lists = frame({name: POLARS[name] for name in ("Int8", "List", "Struct", "Date", "String")}, line_texts)
    suite.add("JSON lines", ".jsonl", "jsonl", lists.write_ndjson)
    suite.add("JSON lines, named .json", ".json", "jsonl", lists.write_ndjson)
    suite.add("JSON, one list", ".json", "other", lists.write_json)
    suite.add("IPC", ".arrow", "other", rows.write_ipc)
    suite.add("Avro", ".avro", "other", frame({}).write_avro)
    yield suite


def fastparquet_suite(folder):
    """Returns what fastparquet writes: types of pandas, and its options."""
    suite = Suite("fastparquet", fastparquet.__version__, folder)
    moments = pd.to_datetime(["2024-02-29 23:59:59.999999", None, "1970-01-01"] * (ROWS // 3), format="ISO8601")
    columns = {
        **{
            str(kind): numpy.arange(ROWS).astype(kind)
            for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
        },
        **{kind: numpy.array([0.0, -0.0, 1.5, numpy.nan, numpy.inf] * (ROWS // 5), kind) for kind in ("float32", "float64")},
        "float16": numpy.arange(ROWS).astype("float16"),
        "bool": numpy.arange(ROWS) % 2 == 0,
        "nullable int": pd.array(cycle([1, 2**62]), "Int64"),
        "nullable bool": pd.array(cycle([True, False]), "boolean"),
        "time": moments,
        "time ms": moments.astype("datetime64[ms]"),
        "time of a zone": moments.tz_localize("Asia/Shanghai"),
        "span": pd.to_timedelta(cycle([1, -5]), "s"),
        "category": pd.Categorical(cycle(["one", "two"])),
        "category of numbers": pd.Categorical(cycle([3, 4])),
        "strings": pd.Series(cycle(["", "字"]), dtype=object),
        "bytes": pd.Series(cycle([b"", b"\xff"]), dtype=object),
        "lists as JSON": pd.Series(cycle([[1, 2], {"a": None}]), dtype=object),
    }
    encodings = {"strings": "utf8", "bytes": "bytes", "lists as JSON": "json", "id": "utf8", "text": "utf8"}
    plain = pd.DataFrame({"id": pd.Series(ids(), dtype=object), "text": pd.Series(texts(), dtype=object)})

    def add(name, rows, **options):
        kinds = {column: encodings.get(column, "infer") for column in rows.columns}
        more = {"object_encoding": kinds, **options}
        suite.add(name, ".parquet", "parquet", lambda path: fastparquet.write(path, rows, **more))

    works = {}
    for name, values in columns.items():
        before = len(suite.cases)
        add(f"type {name}", plain.assign(value=values), object_encoding={**encodings, "value": encodings.get(name, "infer")})
        if len(suite.cases) > before:
            works[name] = values
    everything = plain.assign(**works)
    for codec in (None, "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4_RAW", "LZ4"):
        add(f"all types, {codec}", everything, compression=codec)
    for name, options in {
        "7 rows a group": {"row_group_offsets": 7},
        "no statistics": {"stats": False},
        "statistics": {"stats": True},
        "columns that may be null": {"has_nulls": True},
        "columns that may not be null": {"has_nulls": False},
        "INT96": {"times": "int96"},
        "key-values": {"custom_metadata": {"k": "值"}},
        "text as bytes": {"object_encoding": {**encodings, "text": "bytes"}},
        "text of fixed length": {"fixed_text": {"id": 4}},
    }.items():
        rows = everything
        if name == "text as bytes":
            rows = plain.assign(text=[text.encode() for text in texts()])
        if name == "columns that may not be null":
            rows = plain
        add(f"all types, {name}", rows, **options)
    add("no rows", everything.iloc[:0])
    add("an index", everything.set_index("int8"), write_index=True)
    add("nulls in the text", plain.assign(text=pd.Series(cycle(["a", "b"]), dtype=object)))
    add("several files", everything, file_scheme="hive", row_group_offsets=20)
    add("partitions", plain.assign(part=["x", "y"] * (ROWS // 2)), file_scheme="hive", partition_on=["part"])
    add("partitions, drill", plain.assign(part=["x", "y"] * (ROWS // 2)), file_scheme="drill", partition_on=["part"])
    return suite


def pandas_suite(folder):
    """Returns what pandas writes as CSV and JSON; its Parquet files are pyarrow's."""
    suite = Suite("pandas text", pd.__version__, folder)
    rows = pd.DataFrame({"id": ids(), "text": line_texts(), "n": pd.array(cycle([1, -2]), "Int64"), "f": cycle([0.1, float("inf")])})
    for name, options, dialect in (
        ("default", {"index": False}, {}),
        ("index", {}, {}),
        ("all quoted", {"index": False, "quoting": 1}, {}),
        ("CRLF", {"index": False, "lineterminator": "\r\n"}, {}),
        ("escapes", {"index": False, "doublequote": False, "escapechar": "\\"}, {"doublequote": False, "escapechar": "\\"}),
        ("tab", {"index": False, "sep": "\t"}, {"delimiter": "\t"}),
        ("gb18030", {"index": False, "encoding": "gb18030"}, {}),
        ("utf-16", {"index": False, "encoding": "utf-16"}, {}),
        ("utf-8-sig", {"index": False, "encoding": "utf-8-sig"}, {}),
    ):
        suite.add(
            f"CSV, {name}",
            ".csv",
            "csv",
            lambda path: rows.to_csv(path, **options),
            dialect=dialect,
            encoding=options.get("encoding", "").replace("utf-16", ""),
        )
    for ending in (".gz", ".bz2", ".zip", ".xz"):
        kind = "csv" if ending in (".gz", ".bz2") else "other"
        suite.add(f"CSV{ending}", f".csv{ending}", kind, lambda path: rows.to_csv(path, index=False))
        suite.add(
            f"JSON lines{ending}",
            f".jsonl{ending}",
            kind.replace("csv", "jsonl"),
            lambda path: rows.to_json(path, orient="records", lines=True),
        )
    for name, options in {"default": {}, "not ASCII": {"force_ascii": False}}.items():
        suite.add(f"JSON lines, {name}", ".jsonl", "jsonl", lambda path: rows.to_json(path, orient="records", lines=True, **options))
    for orient in ("records", "split", "columns", "table"):
        suite.add(f"JSON, {orient}", ".json", "other", lambda path: rows.to_json(path, orient=orient))
    return suite


def suites(folder):
    """Yields the suites of the three."""
    yield from polars_suites(folder)
    yield fastparquet_suite(folder)
    yield pandas_suite(folder)
