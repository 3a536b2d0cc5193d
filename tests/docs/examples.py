"""The Python examples of the README and the docs, as they stand on their pages."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")] if "```python" in page.read_text())
# Above an example, <!-- model: {...} --> says what the simulated provider answers to it.
EXAMPLE = re.compile(r"(?:<!-- model: (?P<says>.*?) -->\s*)?^```python\n(?P<code>.*?)^```", re.DOTALL | re.MULTILINE)
