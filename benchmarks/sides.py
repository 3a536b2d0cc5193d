"""Another library in a process and a virtual environment of its own, which answers commands (``…_side.py``)."""

import json
import statistics
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


class Side:
    """A process that reads one JSON command a line and answers with the seconds of each of its calls."""

    def __init__(self, python: str, script: str, package: str, uri: str, name: str) -> None:
        self.package = package
        command = [python, str(FOLDER / script), uri, name]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        code = f"from importlib.metadata import version; print(version({package!r}))"
        self.version = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    def seconds(self, op: str, user: str, times: int = 1) -> list[float]:
        """Seconds of each of some calls."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"op": op, "user": user, "n": times}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of {self.package} ended at {op} of {user}")
        return [float(each) for each in json.loads(answer)]

    def median(self, op: str, user: str, times: int) -> float:
        """Median milliseconds of some calls."""
        return round(statistics.median(self.seconds(op, user, times)) * 1000, 4)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
