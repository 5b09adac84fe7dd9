"""Clients of a served index: how long it takes until a view has a document whose insertion was answered, and how fast the feed is read.

    view_client.py ADDRESS PROCESS RATE SECONDS FILE

Inserts the lines of FILE, JSON lines, at RATE documents a second, ten a request, from ten connections, and reads the feed. PROCESS is that
of the server. Prints one line a figure. A server without a view is only inserted to.
"""

import http.client
import json
import multiprocessing
import os
import sys
import threading
import time

address, process, rate, seconds, file = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
AT_ONCE, CLIENTS = 10, 10


def cpu():
    """CPU seconds of the server."""
    fields = open(f"/proc/{process}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def get(path):
    connection = http.client.HTTPConnection(address)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


lines = open(file, encoding="utf-8").read().splitlines()
began, before = time.monotonic(), cpu()
while (answer := get("/topics/default/view"))[0] == 503:
    time.sleep(0.2)
has_view = answer[0] == 200
if has_view:
    view = json.loads(answer[1])
    print(f"view of {view['documents']} documents, {view['kept']} kept: {cpu() - before:.1f} CPU s, {time.monotonic() - began:.1f} s")

answered = {}


def follow(since, count, to):
    """Reads the feed up to so many different documents. Sends when each came."""
    seen, connection = {}, http.client.HTTPConnection(address, timeout=30)
    connection.request("GET", f"/topics/default/view/changes?since={since}")
    answer = connection.getresponse()
    try:
        while len(seen) < count and (line := answer.readline()):
            seen.setdefault(json.loads(line)["id"], time.monotonic())
    except TimeoutError:
        pass
    to.send(seen)


def insert(client, first):
    """Inserts every tenth batch, each at its time."""
    connection = http.client.HTTPConnection(address)
    for batch in range(client, int(rate * seconds) // AT_ONCE, CLIENTS):
        part = lines[batch * AT_ONCE : (batch + 1) * AT_ONCE]
        time.sleep(max(0.0, first + batch * AT_ONCE / rate - time.monotonic()))
        body = "\n".join(part).encode()
        connection.request("POST", "/topics/default/insert", body, {"Content-Type": "application/x-ndjson"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit(f"an insertion got {answer.status}")
        now = time.monotonic()
        for line in part:
            answered[json.loads(line)["id"]] = now


if has_view:
    # Another process, so that the clients do not keep it waiting.
    of_reader, to = multiprocessing.Pipe(duplex=False)
    reader = multiprocessing.Process(target=follow, args=(view["version"], int(rate * seconds), to), daemon=True)
    reader.start()
    time.sleep(0.5)
first, before = time.monotonic() + 0.5, cpu()
clients = [threading.Thread(target=insert, args=(client, first)) for client in range(CLIENTS)]
for client in clients:
    client.start()
for client in clients:
    client.join()
took = time.monotonic() - first
if has_view:
    while json.loads(get("/topics/default/view")[1])["behind"] > 0:
        time.sleep(0.05)
    seen = of_reader.recv()
count = len(answered)
print(f"{count} documents in {took:.1f} s: {1e6 * (cpu() - before) / count:.0f} CPU us of the server for each")
if not has_view:
    sys.exit()
late = sorted(max(0.0, seen[id] - answered[id]) for id in answered if id in seen)
print(f"never seen in the feed: {count - len(late)}")
part = lambda share: 1e3 * late[min(len(late) - 1, int(share * len(late)))]
print(f"in the feed after the answer: p50 {part(0.5):.1f} ms, p99 {part(0.99):.1f} ms, most {part(1):.1f} ms")

# The whole feed at once.
connection = http.client.HTTPConnection(address)
connection.request("GET", f"/topics/default/view/changes?since={view['version']}")
answer = connection.getresponse()
began, changes, last = time.monotonic(), 0, json.loads(get("/topics/default/view")[1])["version"]
rest = b""
while True:
    data = answer.read1(1 << 20)
    changes += data.count(b"\n")
    rest = (rest + data)[-300:]
    if f'"version":{last},'.encode() in rest and rest.endswith(b"\n"):
        break
print(f"feed: {changes} changes to one reader in {time.monotonic() - began:.3f} s: {changes / (time.monotonic() - began):.0f} a second")
