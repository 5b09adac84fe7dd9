"""Prints a family of near-equal documents as JSON lines: family.py near|template|repeated|short DOCUMENTS CORPUS

near: texts of 120 characters of which two differ. template: one text with other numbers. repeated: one character, repeated. short: texts
cut out of the sentences of CORPUS, a Parquet file.
"""

import json, random, sys

kind, size, mixed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
draw = random.Random(f"{kind} {size}")
han = lambda count: [chr(0x4E00 + draw.randrange(3000)) for _ in range(count)]

def near():
    page = han(120)
    for _ in range(size):
        text = page[:]
        for _ in range(2):
            text[draw.randrange(120)] = han(1)[0]
        yield "".join(text)

def template():
    head, middle, tail = ("".join(han(40)) for _ in range(3))
    for number in range(size):
        yield f"{head}{7 * number}{middle}{1000 + 13 * number}{tail}{draw.randrange(10**6)}"

def repeated():
    for number in range(size):
        yield "哈" * (number + 1 if number < 5000 else draw.randrange(1, 5000))

def short():
    import pyarrow.parquet as pq
    sentences = []
    for text in pq.read_table(mixed, columns=["text"]).column("text").to_pylist():
        sentences += [part for part in (text or "").replace("！", "。").replace("，", "。").split("。") if 4 <= len(part) <= 20]
    for _ in range(size):
        yield "，".join(draw.choice(sentences) for _ in range(draw.randrange(1, 4)))

for number, text in enumerate({"near": near, "template": template, "repeated": repeated, "short": short}[kind]()):
    print(json.dumps({"id": f"{kind}-{number}", "text": text}, ensure_ascii=False))
