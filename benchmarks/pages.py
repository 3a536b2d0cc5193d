"""Puts results into pages of the documentation, between marks."""

from pathlib import Path


def put(page: Path, name: str, text: str) -> None:
    """Put a text between ``<!-- name -->`` and ``<!-- /name -->``, instead of what stands there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, _, rest = page.read_text("utf-8").partition(begin)
    _, _, after = rest.partition(end)
    if not rest or (not after and not rest.endswith(end)):
        raise ValueError(f"{page.name} has no marks for {name}")
    page.write_text(f"{before}{begin}{text}\n{end}{after}", "utf-8")
