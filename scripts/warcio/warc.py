"""WARC files by warcio.

    warc.py write FILE      a file of gzip members, a record each; prints the id of each record and the name of its text
    warc.py read FILE...    prints the id of each record, whose digest must be that of its contents

A text that is written several times, in codings that HTTP has, is one text.
"""

import gzip
import io
import sys

from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

TEXTS = {
    "news": "中国科学院今天发布了新的研究成果，引起了广泛关注。\n有关部门表示将继续支持基础研究。",
    "weather": "明天全国大部分地区天气晴朗，适合出行。\n南方沿海有小雨。",
    "english": "The committee will publish its report on Monday.\nNo further details were given.",
}


def chunked(body):
    half = len(body) // 2
    parts = [body[:half], body[half:], b""]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def page(text):
    return f"<html><head><meta charset=utf-8></head><body><p>{text.replace(chr(10), '</p><p>')}</p></body></html>".encode()


def responses():
    """The headers and the body of each response, and the name of its text."""
    for name, text in TEXTS.items():
        body = text.encode()
        plain = [("Content-Type", "text/plain; charset=utf-8")]
        yield name, plain, body
        yield name, plain + [("Transfer-Encoding", "chunked")], chunked(body)
        yield name, plain + [("Content-Encoding", "gzip")], gzip.compress(body)
        yield name, plain + [("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")], chunked(gzip.compress(body))
        yield name, [("Content-Type", "text/plain; charset=gb18030")], text.encode("gb18030")
        yield name, [("Content-Type", "text/html")], page(text)
    yield None, [("Content-Type", "image/png")], bytes(range(256)) * 40


def write(path):
    with open(path, "wb") as file:
        writer = WARCWriter(file, gzip=True)

        def put(record, name):
            writer.write_record(record)
            print(record.rec_headers.get_header("WARC-Record-ID"), name or "-", sep="\t")

        put(writer.create_warcinfo_record("crawl.warc.gz", {"software": "warcio"}), None)
        for number, (name, headers, body) in enumerate(responses()):
            url = f"http://example.org/{number}"
            head = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
            put(writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=head), name)
            request = StatusAndHeaders("GET / HTTP/1.1", [("Host", "example.org")], is_http_request=True)
            put(writer.create_warc_record(url, "request", http_headers=request), None)
        for name, text in TEXTS.items():
            text = io.BytesIO(text.encode())
            put(
                writer.create_warc_record(
                    f"http://example.org/{name}", "conversion", payload=text, warc_content_type="text/plain"
                ),
                name,
            )


def read(paths):
    for path in paths:
        with open(path, "rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                record.raw_stream.read()
                print(record.rec_headers.get_header("WARC-Record-ID"))


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    read(sys.argv[2:])
