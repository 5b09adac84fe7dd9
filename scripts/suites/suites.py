"""Writers' files and suites through dedup-job, as one table.

suites.py BINARY FOLDER NODE_MODULES [SUITE...]     SUITE: the beginning of the name of a suite; all by default
"""

import collections
import os
import re
import sys
import traceback

import arrow_writer
import duckdb_writer
import frame_writers
import job
import npm_suites
import parquet_judge
import spark_writer
import text_judge

WRITERS = [arrow_writer, frame_writers, duckdb_writer, spark_writer, npm_suites]
NAMES = 6
OUTCOMES = ["read whole", "with rejects", "refused", "changed", "crashed"]


def outcome(binary, case, judges):
    """Runs one case. Returns its outcome, the number of rejected records, and a reason."""
    run = job.run(binary, case)
    if run.crash():
        return "crashed", 0, run.crash()
    if run.code in (1, 2):
        return "refused" if run.errors else "crashed", 0, run.word() or "no word"
    try:
        fault = judges[case.format](case, run) if case.format in judges else None
    except Exception as error:  # An output that the reference reader cannot read is a finding, and the run goes on.
        traceback.print_exc()
        fault = f"cannot be compared: {type(error).__name__}: {str(error)[:200]}"
    if fault:
        return "changed", len(run.rejects), fault
    if case.expected == "must be read" and run.rejects:
        return "changed", len(run.rejects), f"it must be read, and is rejected: {run.word()}"
    if case.expected == "must be rejected" and not run.rejects:
        return "changed", 0, "it must be rejected, and is read"
    if run.rejects:
        return "with rejects", len(run.rejects), run.word()
    return "read whole", 0, ""


def general(why, case):
    """The reason without what differs from file to file, so that cases of one reason are one line."""
    why = why.replace(os.path.dirname(case.path) + "/", "")
    why = re.sub(r"^error: every record was rejected .*? of them\): \".*?\" at \d+: ", "every record is rejected, the first: ", why)
    why = re.sub(r"; it begins with .*", "", why)
    why = re.sub(r"part-\d+-[0-9a-f-]{36}", "part-N", why)
    return re.sub(r"(byte|line) \d+", r"\1 N", why)


def report(binary, suite, judges, details):
    """Runs the cases of a suite. Returns its line of the table, and adds the names of cases that are not read whole to `details`."""
    counts, rejected = collections.Counter(), 0
    for case in suite.cases:
        how, rejects, why = outcome(binary, case, judges)
        counts[how] += 1
        rejected += rejects
        if how != "read whole":
            details[how, suite.name, general(why, case)].append(case.name)
    for name, why in suite.unwritten:
        details["not written by the writer itself", suite.name, why].append(name)
    return [suite.name, suite.version, len(suite.cases), *(counts[how] for how in OUTCOMES), rejected]


def main(binary, folder, modules, *wanted):
    """Prints the table, then each case that was not read whole, with its reason. Fails if a case was changed or crashed."""
    judges = spark_writer.JUDGES
    judges.update(parquet=parquet_judge.judge, csv=text_judge.judge, jsonl=text_judge.judge)
    details, rows = collections.defaultdict(list), []
    for writer in WRITERS:
        for suite in writer.suites(*([folder, modules] if writer is npm_suites else [folder])):
            if not wanted or suite.name.startswith(wanted):
                rows.append(report(os.path.abspath(binary), suite, judges, details))
    print("| suite | version | files | " + " | ".join(OUTCOMES) + " | rejected records |")
    print("|---|---|" + "---|" * (len(OUTCOMES) + 2))
    totals = [sum(row[column] for row in rows) for column in range(2, 4 + len(OUTCOMES))]
    for row in [*rows, ["all", "", *totals]]:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    for how in [*reversed(OUTCOMES[1:]), "not written by the writer itself"]:
        lines = [(suite, why, names) for (which, suite, why), names in details.items() if which == how]
        print(f"\n{how}:" if lines else f"\n{how}: none")
        for suite, why, names in lines:
            more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
            print(f"- {suite}: {'; '.join(names[:NAMES])}{more}: {why}")
    sys.exit(any(how in ("changed", "crashed") for how, _, _ in details))


if __name__ == "__main__":
    main(*sys.argv[1:])
