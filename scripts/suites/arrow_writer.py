"""Parquet, CSV, JSON and the formats of Arrow as pyarrow writes them: each type by itself, then each option over all types."""

import datetime
import decimal
import uuid

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq

from cases import ROWS, Suite, cycle, ids, line_texts, texts

MOMENT = datetime.datetime(2024, 2, 29, 23, 59, 59, 999999)
NUMBERS = {
    **{f"int{bits}": (getattr(pa, f"int{bits}")(), [0, -1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1]) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (getattr(pa, f"uint{bits}")(), [0, 1, 2**bits - 1, 2 ** (bits - 1)]) for bits in (8, 16, 32, 64)},
    **{
        str(kind): (kind, [0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf")])
        for kind in (pa.float16(), pa.float32(), pa.float64())
    },
    **{
        f"decimal{bits} of {digits}": (getattr(pa, f"decimal{bits}")(digits, scale), [decimal.Decimal(f"-{'9' * digits}E-{scale}"), 0])
        for bits, digits, scale in ((32, 9, 2), (64, 18, 0), (128, 1, 1), (128, 38, 38), (256, 76, 10))
    },
}
TIMES = {
    **{
        f"timestamp {unit} {zone}": (pa.timestamp(unit, zone), [0, -1, 1, 253402300799])
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Asia/Shanghai", "+05:30")
    },
    **{f"duration {unit}": (pa.duration(unit), [0, -1, 10**12]) for unit in ("s", "ms", "us", "ns")},
    "time32 s": (pa.time32("s"), [0, 86399]),
    "time32 ms": (pa.time32("ms"), [0, 86399999]),
    "time64 us": (pa.time64("us"), [0, 86399999999]),
    "time64 ns": (pa.time64("ns"), [0, 86399999999999]),
    "date32": (pa.date32(), [0, -719162, 2932896, 2**31 - 1]),
    "date64": (pa.date64(), [0, 86400000]),
    "interval": (pa.month_day_nano_interval(), [pa.MonthDayNano([1, -15, 30])]),
}
OTHERS = {
    "bool": (pa.bool_(), [True, False]),
    "null": (pa.null(), []),
    **{str(kind): (kind, ["", "a", "字", "x" * 3000]) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{str(kind): (kind, [b"", b"\0\xff", b"x" * 3000]) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())},
    "fixed 3": (pa.binary(3), [b"abc", b"\0\0\0", b"\xff\xff\xff"]),
    "fixed 0": (pa.binary(0), [b""]),
    "uuid": (pa.uuid(), [uuid.UUID(int=7).bytes]),
    "json": (pa.json_(pa.string()), ['{"a":1}']),
    "bool8": (pa.bool8(), [1, 0]),
    "list": (pa.list_(pa.int32()), [[], [1], [None], [1, None, 3]]),
    "large list": (pa.large_list(pa.string()), [[], ["a"], [None]]),
    "list view": (pa.list_view(pa.int8()), [[], [1, 2]]),
    "fixed list": (pa.list_(pa.float32(), 3), [[1, 2, float("nan")]]),
    "list of lists": (pa.list_(pa.list_(pa.list_(pa.int8()))), [[], [[]], [[[1, None], None], None], [[[], [2]]]]),
    "struct": (pa.struct([("a", pa.int8()), ("b.c", pa.string())]), [{"a": None, "b.c": "x"}, {"a": 1, "b.c": None}]),
    "empty struct": (pa.struct([]), [{}]),
    "struct of lists": (pa.struct([("l", pa.list_(pa.struct([("x", pa.int64())])))]), [{"l": [{"x": 1}, None]}, {"l": None}]),
    "map": (pa.map_(pa.string(), pa.int32()), [[], [("a", 1), ("a", None)]]),
    "map of maps": (pa.map_(pa.int32(), pa.map_(pa.string(), pa.float64())), [[(1, [("b", 0.5)]), (2, None)], []]),
    "map of structs": (pa.map_(pa.string(), pa.struct([("z", pa.date32())])), [[("k", {"z": 3})]]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["one", "two"]),
    "ordered dictionary": (pa.dictionary(pa.uint16(), pa.large_string(), ordered=True), ["one", "two"]),
    "dictionary of numbers": (pa.dictionary(pa.int32(), pa.int64()), [7, 8]),
    "dictionary of bytes": (pa.dictionary(pa.int32(), pa.binary()), [b"\xff", b""]),
    "run ends": (pa.run_end_encoded(pa.int32(), pa.string()), ["r"]),
}
UNWRITTEN = ("interval", "fixed 0", "empty struct", "run ends")
ENCODINGS = {
    "PLAIN": ["i32", "i64", "f", "d", "s", "b"],
    "BYTE_STREAM_SPLIT": ["i32", "i64", "f", "d", "x"],
    "DELTA_BINARY_PACKED": ["i32", "i64"],
    "DELTA_LENGTH_BYTE_ARRAY": ["s"],
    "DELTA_BYTE_ARRAY": ["s", "x"],
    "RLE": ["b"],
}
OPTIONS = {
    **{
        f"version {version}": {"version": version, "coerce_timestamps": "us", "allow_truncated_timestamps": True}
        for version in ("1.0", "2.4", "2.6")
    },
    **{
        f"pages {pages}, {codec}": {"data_page_version": pages, "compression": codec}
        for pages in ("1.0", "2.0")
        for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
    },
    **{f"{rows} rows a group": {"row_group_size": rows} for rows in (1, 7, 60)},
    "no dictionary": {"use_dictionary": False},
    "no statistics": {"write_statistics": False},
    "page index and checksums": {"write_page_index": True, "write_page_checksum": True},
    "small pages": {"data_page_size": 1, "write_batch_size": 1},
    "small dictionaries": {"dictionary_pagesize_limit": 1},
    "no Arrow schema": {"store_schema": False},
    "INT96": {"use_deprecated_int96_timestamps": True},
    "times in ms": {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
    "older lists": {"use_compliant_nested_type": False},
    "decimals as integers": {"store_decimal_as_integer": True},
    "chunks by content": {"use_content_defined_chunking": True},
    "sorted": {"sorting_columns": [pq.SortingColumn(0, descending=True, nulls_first=True)]},
    "gzip 9, one column": {"compression": {"text": "gzip"}, "compression_level": {"text": 9}},
    "bloom filters": {"bloom_filter_options": {"id": True}},
}


def array(kind, values, rows=ROWS):
    """A column of the type, with nulls."""
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if pa.types.is_run_end_encoded(kind):
        return pa.compute.run_end_encode(pa.array(cycle(values, rows), kind.value_type))
    column = pa.array(cycle(values, rows), storage)
    return column if storage is kind else kind.wrap_array(column)


def table(columns, rows=ROWS):
    """A table with id, text and the columns, given by name with their type and values."""
    return pa.table({"id": ids(rows), "text": texts(rows), **{name: array(*column, rows) for name, column in columns.items()}})


def suites(folder):
    """Yields the suite of pyarrow's Parquet files and that of its other formats."""
    suite = Suite("pyarrow Parquet", pa.__version__, folder)

    def add(name, rows, **options):
        suite.add(name, ".parquet", "parquet", lambda path: pq.write_table(rows() if callable(rows) else rows, path, **options))

    for name, column in {**NUMBERS, **TIMES, **OTHERS}.items():
        add(f"type {name}", lambda column=column: table({"value": column}))
        add(f"type {name}, pages 2", lambda column=column: table({"value": column}), data_page_version="2.0", compression="zstd")
        if isinstance(column[0], pa.BaseExtensionType) or name in UNWRITTEN:
            continue
        add(f"list of {name}", lambda column=column: table({"value": (pa.list_(column[0]), [[], column[1], [None]])}))
        add(
            f"struct of {name}",
            lambda column=column: table({"value": (pa.struct([("v", column[0])]), [{"v": value} for value in [*column[1], None]])}),
        )
    # Seconds of a zone change in `removed`, which would hide other changes of the files of all types.
    unlike = (
        "timestamp s Asia",
        "timestamp s +",
        "interval",
        "duration",
        "run ends",
        "empty struct",
        "fixed 0",
        "list view",
        "null",
        "ms",
        "fixed list",
    )
    everything = {name: column for name, column in {**NUMBERS, **TIMES, **OTHERS}.items() if not name.startswith(unlike)}
    for name, options in OPTIONS.items():
        add(f"all types, {name}", lambda: table(everything), **options)
    plain = {
        "i32": NUMBERS["int32"],
        "i64": NUMBERS["int64"],
        "f": NUMBERS["float"],
        "d": NUMBERS["double"],
        "s": OTHERS["string"],
        "b": OTHERS["bool"],
        "x": OTHERS["fixed 3"],
    }
    for name, columns in ENCODINGS.items():
        for pages in ("1.0", "2.0"):
            add(
                f"{name}, pages {pages}",
                table(plain),
                use_dictionary=False,
                column_encoding=dict.fromkeys(columns, name),
                data_page_version=pages,
            )
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"):
        add(f"the text in {encoding}", table({}), use_dictionary=False, column_encoding={"text": encoding})
    for kind in (
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int32(), pa.binary()),
    ):
        add(
            f"the text is {kind}",
            pa.table(
                {
                    "id": ids(),
                    "text": pa.array([text.encode() for text in texts()]).cast(pa.string()).dictionary_encode().cast(kind)
                    if pa.types.is_dictionary(kind)
                    else pa.array(texts()).cast(kind),
                }
            ),
        )
    add("no rows", table({name: column for name, column in everything.items()}).slice(0, 0))
    add("one row", table(everything, 1))
    add("texts that are null or empty", pa.table({"id": ids(6), "text": ["a", None, "", "a", "", None]}))
    add("all texts are null", pa.table({"id": ids(3), "text": pa.array([None] * 3, pa.string())}))
    add("ids that are null", pa.table({"id": pa.array([None] * ROWS, pa.string()), "text": texts()}))
    for kind in (pa.int64(), pa.uint64(), pa.float64(), pa.timestamp("us"), pa.decimal128(9, 2)):
        add(
            f"ids are {kind}",
            pa.table(
                {
                    "id": pa.array(range(ROWS))
                    .cast(pa.float64() if pa.types.is_floating(kind) else pa.int64())
                    .cast(kind if not pa.types.is_decimal(kind) else pa.decimal128(38, 2)),
                    "text": texts(),
                }
            ),
        )
    add(
        "odd names",
        table({name: NUMBERS["int8"] for name in ("a.b", "with space", "名字", "", "`tick`", 'quo"te', "new\nline", "id.text")}),
    )
    add("names of a removal", table({name: NUMBERS["int8"] for name in ("duplicate_of", "reason", "cluster_dedup")}))
    add("names that differ in case", table({"ID": NUMBERS["int8"], "Text": OTHERS["string"]}))
    add("2,000 columns", table({f"c{number}": NUMBERS["int8"] for number in range(2000)}))
    add(
        "required columns",
        pa.table(
            {"id": ids(), "text": texts()}, schema=pa.schema([pa.field("id", pa.string(), False), pa.field("text", pa.string(), False)])
        ),
    )
    add("key-values", table({}).replace_schema_metadata({"k": "值", "empty": "", "pandas": "{}"}))
    add("key-values that are not UTF-8", table({}).replace_schema_metadata({b"\xff": b"\xfe"}))
    add(
        "field ids",
        pa.table(
            {"id": ids(), "text": texts()},
            schema=pa.schema(
                [pa.field("id", pa.string(), metadata={"PARQUET:field_id": "7"}), pa.field("text", pa.string(), metadata={"note": "n"})]
            ),
        ),
    )
    yield suite
    yield other_formats(Suite("pyarrow others", pa.__version__, folder))


def other_formats(suite):
    """CSV in the styles of pyarrow, and formats that are not ours."""
    rows = pa.table({"id": ids(), "text": line_texts(), "n": pa.array(cycle([1, -2]))})
    for name, options in {
        "default": {},
        "all quoted": {"quoting_style": "all_valid"},
        "tab": {"delimiter": "\t"},
        "no header": {"include_header": False},
        "header not quoted": {"quoting_header": "none"},
        "CRLF": {"eol": "\r\n"},
    }.items():
        dialect = {"delimiter": options.get("delimiter", ",")}
        suite.add(f"CSV, {name}", ".csv", "csv", lambda path: pa.csv.write_csv(rows, path, pa.csv.WriteOptions(**options)), dialect=dialect)
    suite.add("Feather", ".feather", "other", lambda path: pa.feather.write_feather(rows, path))
    suite.add("Arrow stream", ".arrows", "other", lambda path: stream(rows, path))
    suite.add("ORC", ".orc", "other", lambda path: pa.orc.write_table(rows, path))
    return suite


def stream(rows, path):
    """Writes Arrow's format for streams."""
    with pa.ipc.new_stream(path, rows.schema) as writer:
        writer.write_table(rows)
