"""Runs dedup-job over one case, and says how it ended."""

import glob
import json
import os
import shutil
import subprocess
from dataclasses import dataclass

LIMIT = 120
REMOVAL = ["duplicate_of", "similarity", "cluster", "reason"]


@dataclass
class Run:
    """How a job ended: exit code, the lines of stderr, the folder of its output, and the rejects."""

    code: int
    errors: list
    folder: str
    rejects: list

    def parts(self, kind):
        """The files of kept or removed, in the order of the splits; those of a partition lie in its folder."""
        found = glob.glob(f"{glob.escape(self.folder)}/{kind}/**/part-*", recursive=True)
        return sorted((path for path in found if os.path.isfile(path) and "/_reasons/" not in path), key=os.path.basename)

    def crash(self):
        """Says why this is no orderly end, or nothing."""
        if self.code is None:
            return f"no end within {LIMIT} seconds"
        if self.code not in (0, 1, 2, 3):
            return f"exit code {self.code}"
        return next((line for line in self.errors if "panicked" in line), None)

    def word(self):
        """The message of a job that was refused, or the reason of the first reject."""
        if self.rejects:
            return self.rejects[0]["reason"]
        return self.errors[-1] if self.errors else ""


def run(binary, case):
    """Runs `dedup --method exact` with the options of the case."""
    folder = os.path.join(os.path.dirname(case.path), "out")
    shutil.rmtree(folder, ignore_errors=True)
    command = [binary, "--quiet", "dedup", "--method", "exact", "--workers", "1", *case.options, case.path, folder]
    try:
        process = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return Run(None, [], folder, [])
    errors = process.stderr.decode("utf-8", "replace").splitlines()
    rejects = []
    for path in glob.glob(f"{glob.escape(folder)}/rejects/*.jsonl"):
        with open(path, encoding="utf-8") as lines:
            rejects += [json.loads(line) for line in lines]
    return Run(process.returncode, errors, folder, rejects)
