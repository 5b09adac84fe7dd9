"""Parquet, CSV, JSON and SequenceFiles as Spark writes them: each is a folder of parts with a _SUCCESS."""

import datetime
import decimal
import os
from collections import Counter

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from cases import ROWS, Suite, cycle, ids, line_texts, texts

SEQUENCE_FILE = "org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat"
COMPRESS = "mapreduce.output.fileoutputformat.compress"
SCHEMA = """id string, text string, b byte, s short, i int, l long, f float, d double, yes boolean, bytes binary, day date, moment timestamp,
    plain timestamp_ntz, d9 decimal(9,2), d18 decimal(18,0), d38 decimal(38,10), list array<int>, lists array<array<string>>,
    map map<string,int>, maps map<int,struct<x:array<date>>>, struct struct<a:int,`b.c`:string>, days interval day to second"""
TEXT = ", ".join("id string|text string|n int|s string".split("|"))


def session(folder):
    """A small Spark of one thread in this process."""
    builder = SparkSession.builder.master("local[1]").config("spark.driver.memory", "1g").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.session.timeZone", "Asia/Shanghai").config("spark.local.dir", folder)
    builder = builder.config("spark.sql.warehouse.dir", os.path.join(folder, "warehouse"))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def everything(spark):
    """Rows with a column of each type, with nulls."""
    moment = datetime.datetime(2024, 2, 29, 23, 59, 59, 999999)
    values = [
        [0, -128], [0, -32768], [0, 2**31 - 1], [0, -(2**63)], [0.0, -0.0, float("nan")], [1.5, float("-inf")], [True, False],
        [b"", b"\xff\0"], [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], [moment, datetime.datetime(1600, 1, 1)], [moment],
        [decimal.Decimal("-1.50")], [decimal.Decimal(10**17)], [decimal.Decimal("0.0000000001")], [[], [1, None]],
        [[], [[]], [["a", None], None]], [{}, {"k": 1, "l": None}], [{1: {"x": [None]}, 2: None}],
        [{"a": None, "b.c": "字"}], [datetime.timedelta(days=1, microseconds=1)],
    ]  # fmt: skip
    rows = spark.createDataFrame(list(zip(ids(), texts(), *map(cycle, values))), SCHEMA).coalesce(1)
    return rows.withColumn("months", f.expr("if(i = 0, make_ym_interval(1, 2), null)"))


def parquet_suite(spark, folder):
    """Returns Spark's Parquet files."""
    suite = Suite("Spark Parquet", pyspark.__version__, folder)
    rows = everything(spark)

    def add(name, frame=rows, settings=None, partitions=(), **options):
        def write(path):
            for key, value in (settings or {}).items():
                spark.conf.set(f"spark.sql.parquet.{key}", value)
            try:
                frame.write.partitionBy(*partitions).options(**options).parquet(path)
            finally:
                for key in settings or {}:
                    spark.conf.unset(f"spark.sql.parquet.{key}")

        suite.add(name, "", "parquet", write)

    for name in rows.columns[2:]:
        add(f"column {name}", rows.select("id", "text", name))
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "lz4_raw", "brotli"):
        add(f"all types, {codec}", compression=codec)
    for kind in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"):
        add(f"all types, times as {kind}", settings={"outputTimestampType": kind})
    add("all types, older format", settings={"writeLegacyFormat": "true"})
    add(
        "all types, older calendar",
        settings={"datetimeRebaseModeInWrite": "LEGACY", "int96RebaseModeInWrite": "LEGACY", "outputTimestampType": "INT96"},
    )
    add("all types, pages 2", **{"parquet.writer.version": "v2"})
    add("all types, pages 2, no dictionary", **{"parquet.writer.version": "v2", "parquet.enable.dictionary": "false"})
    add(
        "all types, small pages and row groups",
        **{"parquet.page.size": "64", "parquet.block.size": "2048", "parquet.page.row.count.limit": "7"},
    )
    add("all types, bloom filter", **{"parquet.bloom.filter.enabled#id": "true"})
    add("all types, checksums", **{"parquet.page.write-checksum.enabled": "true"})
    add("variant", rows.select("id", "text", f.parse_json(f.lit('{"a":[1,null]}')).alias("v")))
    add("no rows", rows.limit(0))
    add("three files", rows.repartition(3))
    part = rows.withColumn("part", f.when(f.col("i") == 0, "a b/c=字").otherwise(f.col("i").cast("string")))
    add("partitions", part.select("id", "text", "part"), partitions=("part",))
    add("partitions of two columns", part.select("id", "text", "part", f.col("yes").alias("_yes")), partitions=("_yes", "part"))
    return suite


def text_suite(spark, folder):
    """Returns Spark's CSV and JSON."""
    suite = Suite("Spark text", pyspark.__version__, folder)
    short = spark.createDataFrame(list(zip(ids(), texts(), cycle([1, -2]), cycle(["", '"']))), TEXT).coalesce(1)
    long = spark.createDataFrame(list(zip(ids(), line_texts(), cycle([1, -2]), cycle(["", '"']))), TEXT).coalesce(1)
    backslash = {"doublequote": False, "escapechar": "\\"}
    for name, frame, options, dialect in (
        ("default", short, {}, backslash),
        ("header", short, {"header": True}, backslash),
        ("header, several lines", long, {"header": True}, backslash),
        ("quotes doubled", short, {"header": True, "escape": '"'}, {}),
        ("quotes doubled, several lines", long, {"header": True, "escape": '"'}, {}),
        ("quotes doubled, all quoted", long, {"header": True, "escape": '"', "quoteAll": True}, {}),
        ("quotes doubled, null value", long, {"header": True, "escape": '"', "nullValue": "NULL"}, {}),
        (
            "quotes doubled, spaces kept",
            long,
            {"header": True, "escape": '"', "ignoreTrailingWhiteSpace": False, "ignoreLeadingWhiteSpace": False},
            {},
        ),
        ("quotes doubled, gzip", long, {"header": True, "escape": '"', "compression": "gzip"}, {}),
        ("quotes doubled, bzip2", long, {"header": True, "escape": '"', "compression": "bzip2"}, {}),
        ("quotes doubled, three files", long.repartition(3), {"header": True, "escape": '"'}, {}),
        ("quotes doubled, UTF-16LE", long, {"header": True, "escape": '"', "encoding": "UTF-16LE"}, {}),
        ("quotes doubled, GB18030", long, {"header": True, "escape": '"', "encoding": "GB18030"}, {}),
        ("tab", short, {"header": True, "sep": "\t"}, {**backslash, "delimiter": "\t"}),
        ("no quotes", short, {"header": True, "quote": ""}, {"quoting": 3}),
    ):
        encoding = options.get("encoding", "")
        named = ["--encoding", "utf-16le"] if encoding == "UTF-16LE" else []
        suite.add(
            f"CSV, {name}",
            "",
            "csv",
            lambda path: frame.write.options(**options).csv(path),
            dialect=dialect,
            encoding=encoding,
            options=named,
        )
    rows = everything(spark).drop("months", "days")
    for name, options in {
        "default": {},
        "nulls written": {"ignoreNullFields": False},
        "not ASCII escaped": {"writeNonAsciiCharacterAsCodePoint": True},
        "gzip": {"compression": "gzip"},
        "zstd": {"compression": "zstd"},
        "deflate": {"compression": "deflate"},
        "snappy": {"compression": "snappy"},
    }.items():
        kind = "other" if name in ("deflate", "snappy") else "jsonl"
        suite.add(f"JSON, {name}", "", kind, lambda path: rows.write.options(**options).json(path))
    suite.add("JSON, several lines", "", "jsonl", lambda path: long.write.json(path))
    suite.add("JSON, partitions", "", "jsonl", lambda path: long.write.partitionBy("n").json(path))
    suite.add("CSV, partitions", "", "csv", lambda path: long.write.partitionBy("n").options(header=True, escape='"').csv(path))
    suite.add("text, as lines", "", "other", lambda path: short.select("text").write.text(path), options=["--format", "lines"])
    suite.add("ORC", "", "other", lambda path: long.write.orc(path))
    return suite


def sequence_suite(spark, folder):
    """Returns SequenceFiles of Spark, by class of key and value, and by codec."""
    suite = Suite("Spark SequenceFile", pyspark.__version__, folder)
    io = "org.apache.hadoop.io."
    keys = {
        "Text": ids(),
        "IntWritable": range(ROWS),
        "LongWritable": range(2**40, 2**40 + ROWS),
        "NullWritable": [None] * ROWS,
        "DoubleWritable": map(float, range(ROWS)),
        "BytesWritable": [bytearray(word, "ascii") for word in ids()],
    }
    values = {
        "Text": line_texts(),
        "NullWritable": [None] * ROWS,
        "BytesWritable": [bytearray(text, "utf-8") for text in line_texts()],
        "IntWritable": [row // 2 for row in range(ROWS)],
        "BooleanWritable": [True] * ROWS,
    }
    pairs = [(key, "Text") for key in keys] + [("Text", value) for value in values] + [("IntWritable", "IntWritable")]
    codecs = {
        "": None,
        ", DefaultCodec": "DefaultCodec",
        ", GzipCodec": "GzipCodec",
        ", BZip2Codec": "BZip2Codec",
        ", Lz4Codec": "Lz4Codec",
        ", SnappyCodec": "SnappyCodec",
        ", ZStandardCodec": "ZStandardCodec",
    }
    written = [(key, value, "") for key, value in dict.fromkeys(pairs)] + [("Text", "Text", codec) for codec in codecs if codec]
    lists = {name: list(items) for name, items in keys.items()}
    for key, value, codec in written:
        rows = spark.sparkContext.parallelize(list(zip(lists[key], values[value])), 2)
        settings = {COMPRESS: "true", f"{COMPRESS}.type": "BLOCK", f"{COMPRESS}.codec": f"{io}compress.{codecs[codec]}"}
        kinds = {"keyClass": io + key, "valueClass": io + value, "conf": settings if codec else {COMPRESS: "false"}}
        suite.add(f"{key}, {value}{codec}", "", "sequencefile", lambda path: rows.saveAsNewAPIHadoopFile(path, SEQUENCE_FILE, **kinds))
    suite.add(
        "as Spark converts them",
        "",
        "sequencefile",
        lambda path: spark.sparkContext.parallelize(list(zip(ids(), line_texts()))).saveAsSequenceFile(path),
    )
    return suite


def pairs_of(spark, folder):
    """The keys and values of the SequenceFiles below a folder, in order, as Spark reads them."""
    return [repr((key, value)) for path in folder for key, value in spark.sparkContext.sequenceFile("file:" + path, minSplits=1).collect()]


def sequence_judge(spark):
    """Returns the judge of SequenceFiles, which reads them with Spark."""

    def judge(case, run):
        parts = sorted(os.path.join(case.path, name) for name in os.listdir(case.path) if name.startswith("part-"))
        before, kept, removed = (Counter(pairs_of(spark, paths)) for paths in (parts, run.parts("kept"), run.parts("removed")))
        if (kept + removed) - before:
            return f"records that the input does not have, such as {next(iter((kept + removed) - before))[:160]}"
        lost = before - (kept + removed)
        return f"{lost.total()} records are lost without a reject" if lost.total() > len(run.rejects) else None

    return judge


def suites(folder):
    """Yields Spark's suites. The judge of SequenceFiles needs the same Spark."""
    spark = session(folder)
    JUDGES["sequencefile"] = sequence_judge(spark)
    yield parquet_suite(spark, folder)
    yield text_suite(spark, folder)
    yield sequence_suite(spark, folder)
    spark.stop()


JUDGES = {}
