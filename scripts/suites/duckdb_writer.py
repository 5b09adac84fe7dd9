"""Parquet, CSV and JSON as DuckDB writes them."""

import duckdb

from cases import Suite, ids, line_texts, texts

TYPES = {
    **{
        kind: ["0", "1", "100"]
        for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")
    },
    **{kind: ["0", "'-0'", "1.5", "'nan'", "'inf'"] for kind in ("FLOAT", "DOUBLE")},
    **{kind: ["0", "-1.5"] for kind in ("DECIMAL(4,1)", "DECIMAL(9,2)", "DECIMAL(18,3)", "DECIMAL(38,10)")},
    "BOOLEAN": ["true", "false"],
    "VARCHAR": ["''", "'字'", "repeat('x', 3000)"],
    "BLOB": ["'\\x00\\xFF'::BLOB", "''::BLOB"],
    "BIT": ["'10101'"],
    "UUID": ["'eeccb8c5-9943-b2bb-bb5e-222f4e14b687'"],
    "DATE": ["'0001-01-01'", "'9999-12-31'", "'infinity'"],
    "TIME": ["'23:59:59.999999'"],
    "TIME_NS": ["'23:59:59.999999999'"],
    "TIMETZ": ["'23:59:59.999999+08'"],
    **{
        kind: ["'2024-02-29 23:59:59.999999'", "'1677-09-22 00:00:00'"]
        for kind in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ")
    },
    "INTERVAL": ["interval '1 month 2 days 3 seconds'", "interval '0 days'"],
    "ENUM('one', 'two')": ["'one'", "'two'"],
    "JSON": ["'{\"a\":1}'"],
    "INTEGER[]": ["[]", "[1, NULL]"],
    "INTEGER[2]": ["[1, NULL]"],
    "VARCHAR[][]": ["[[], NULL, ['a', NULL]]", "[]"],
    "STRUCT(a INTEGER, b VARCHAR[])": ["{'a': 1, 'b': []}", "{'a': NULL, 'b': NULL}"],
    "STRUCT(a STRUCT(b STRUCT(c DATE)))": ["{'a': NULL}", "{'a': {'b': {'c': NULL}}}"],
    "MAP(VARCHAR, INTEGER)": ["map {}", "map {'k': 1, 'l': NULL}"],
    "MAP(INTEGER, MAP(VARCHAR, DOUBLE[]))": ["map {1: map {'a': [0.5]}}"],
    "UNION(n INTEGER, s VARCHAR)": ["1", "'s'"],
    "VARIANT": ["1", "'s'", "[1, 2]"],
    "GEOMETRY": ["'POINT(1 2)'"],
    "BIGNUM": ["'123456789012345678901234567890123456789012'"],
}
PARQUET = {
    **{codec: f"COMPRESSION {codec}" for codec in ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw")},
    "version 1": "PARQUET_VERSION v1",
    "version 2": "PARQUET_VERSION v2",
    "version 2, no dictionary": "PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1",
    "field ids": "FIELD_IDS 'auto'",
    "key-values": "KV_METADATA {k: '值'}",
    "bloom filters": "BLOOM_FILTER_FALSE_POSITIVE_RATIO 0.001",
    "small row groups": "ROW_GROUP_SIZE 2048, ROW_GROUPS_PER_FILE 1000",
    "encrypted": "ENCRYPTION_CONFIG {footer_key: 'key256'}",
}


def column(connection, name, kind, values):
    """Adds a column of the type to the table `corpus`; the values come in turns, with a null behind each turn."""
    connection.execute(f"alter table corpus add column {name} {kind}")
    for turn, value in enumerate(values):
        connection.execute(f"update corpus set {name} = ({value})::{kind} where row_number % {len(values) + 1} = {turn}")


def corpus(words):
    """A connection with the table `corpus`."""
    connection = duckdb.connect()
    connection.execute("create table corpus (row_number integer, id varchar, text varchar)")
    connection.executemany("insert into corpus values (?, ?, ?)", [[row, *pair] for row, pair in enumerate(zip(ids(), words))])
    return connection


def copy(connection, path, options, query="select * from corpus order by row_number"):
    """Writes the rows of a query to a file or folder."""
    connection.execute(f"copy ({query}) to '{path}' ({options})")


def suites(folder):
    """Yields the suite of DuckDB's Parquet files, and that of its text files."""
    suite = Suite("DuckDB Parquet", duckdb.__version__, folder)
    everything = corpus(texts())
    for number, (kind, values) in enumerate(TYPES.items()):
        for version in ("v1", "v2"):
            single = corpus(texts())
            suite.add(
                f"type {kind}, {version}",
                ".parquet",
                "parquet",
                lambda path: (column(single, "value", kind, values), copy(single, path, f"FORMAT parquet, PARQUET_VERSION {version}")),
            )
        if kind not in ("VARIANT", "GEOMETRY", "BIGNUM", "DATE", "INTEGER[2]"):
            column(everything, f"c{number}", kind, values)
    everything.execute("pragma add_parquet_key('key256', '01234567891123450123456789112345')")
    for name, options in PARQUET.items():
        suite.add(f"all types, {name}", ".parquet", "parquet", lambda path: copy(everything, path, f"FORMAT parquet, {options}"))
    suite.add("no rows", ".parquet", "parquet", lambda path: copy(everything, path, "FORMAT parquet", "select * from corpus limit 0"))
    suite.add(
        "10,000 rows",
        ".parquet",
        "parquet",
        lambda path: copy(
            everything,
            path,
            "FORMAT parquet, ROW_GROUP_SIZE 2048",
            "select i as id, 'text ' || (i // 2) as text, [i, null] as l from range(10000) t(i)",
        ),
    )
    suite.add(
        "partitions",
        "",
        "parquet",
        lambda path: copy(
            everything,
            path,
            "FORMAT parquet, PARTITION_BY (part)",
            "select id, text, row_number % 2 as part from corpus order by row_number",
        ),
    )
    suite.add(
        "partitions that are written too",
        "",
        "parquet",
        lambda path: copy(
            everything,
            path,
            "FORMAT parquet, PARTITION_BY (part), WRITE_PARTITION_COLUMNS true",
            "select id, text, row_number % 2 as part from corpus order by row_number",
        ),
    )
    suite.add(
        "odd names",
        ".parquet",
        "parquet",
        lambda path: copy(
            everything,
            path,
            "FORMAT parquet",
            """select id, text, 1 as "a.b", 2 as "with space", 3 as "名字", 4 as "quo""te" from corpus""",
        ),
    )
    yield suite
    yield text_suite(Suite("DuckDB text", duckdb.__version__, folder))


def text_suite(suite):
    """CSV in DuckDB's dialects, and JSON."""
    connection = corpus(line_texts())
    column(connection, "s", "VARCHAR", ["''", "'\"'"])
    for name, options, dialect in (
        ("default", "HEADER", {}),
        ("no header", "HEADER false", {}),
        ("all quoted", "HEADER, FORCE_QUOTE *", {}),
        ("null string", "HEADER, NULLSTR 'NULL'", {}),
        ("semicolon", "HEADER, DELIMITER ';'", {"delimiter": ";"}),
        ("single quotes", "HEADER, QUOTE '''', ESCAPE ''''", {"quotechar": "'"}),
        ("escapes", "HEADER, ESCAPE '\\'", {"doublequote": False, "escapechar": "\\"}),
    ):
        suite.add(f"CSV, {name}", ".csv", "csv", lambda path: copy(connection, path, f"FORMAT csv, {options}"), dialect=dialect)
    for ending, codec in ((".gz", "gzip"), (".zst", "zstd")):
        suite.add(f"CSV, {codec}", f".csv{ending}", "csv", lambda path: copy(connection, path, f"FORMAT csv, HEADER, COMPRESSION {codec}"))
        suite.add(f"JSON, {codec}", f".json{ending}", "jsonl", lambda path: copy(connection, path, f"FORMAT json, COMPRESSION {codec}"))
    column(connection, "l", "INTEGER[]", ["[1, NULL]", "[]"])
    column(connection, "m", "MAP(VARCHAR, DOUBLE)", ["map {'k': 0.5}"])
    suite.add("JSON lines", ".json", "jsonl", lambda path: copy(connection, path, "FORMAT json"))
    suite.add("JSON, one list", ".json", "other", lambda path: copy(connection, path, "FORMAT json, ARRAY true"))
    suite.add(
        "CSV, partitions",
        "",
        "csv",
        lambda path: copy(
            connection, path, "FORMAT csv, HEADER, PARTITION_BY (part)", "select id, text, row_number % 2 as part from corpus"
        ),
    )
    suite.add(
        "JSON, partitions",
        "",
        "jsonl",
        lambda path: copy(connection, path, "FORMAT json, PARTITION_BY (part)", "select id, text, row_number % 2 as part from corpus"),
    )
    return suite
