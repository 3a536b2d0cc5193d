"""Every Python example of the README and the docs passes pyright, as a reader's editor would check it.

``python tests/docs/typed.py`` writes each page's examples into a module and runs pyright over them. A module is one
function, so that examples may await at the top, and its lines are numbered as the page's are.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from examples import EXAMPLE, PAGES


def module(page: Path) -> str:
    """A page's examples as one module, line for line where the page has them."""
    text = page.read_text()
    lines = [""] * (text.count("\n") + 1)
    lines[0] = "async def page() -> None:"
    for match in EXAMPLE.finditer(text):
        first = text[: match.start("code")].count("\n")
        for number, line in enumerate(match["code"].splitlines(), first):
            lines[number] = f"    {line}" if line else ""
    return "\n".join(lines) + "\n"


def main() -> int:
    """Check all pages; pyright's own exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "basic", "include": ["*.md.py"]}))
        for page in PAGES:
            (folder / f"{page.name}.py").write_text(module(page))
        command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", name]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
