"""Prints as JSON what Prometheus' own library reads in a file of metrics: the value of each name with its labels."""

import json
import sys

from prometheus_client.parser import text_fd_to_metric_families

values = {}
with open(sys.argv[1], encoding="utf-8", newline="") as file:
    for family in text_fd_to_metric_families(file):
        assert family.type in ("counter", "gauge") and family.documentation, family
        assert family.samples, f"{family.name} has no value"
        for sample in family.samples:
            assert (family.type == "counter") == sample.name.endswith("_total"), sample
            name = " ".join([sample.name, *(f"{label}={value}" for label, value in sorted(sample.labels.items()))])
            assert name not in values, name
            values[name] = sample.value
print(json.dumps(values))
