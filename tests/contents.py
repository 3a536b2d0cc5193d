"""``python tests/contents.py WHEEL SDIST``: fails unless they hold what they should and nothing else."""

import sys
import tarfile
import zipfile
from pathlib import Path

MODULES = {p.as_posix() for p in Path("asyncmem").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
NEEDED = {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "docs/tutorial.md", "tests/conftest.py"}


def check(what: str, missing: set[str], extra: set[str]) -> None:
    """Exit with the difference, if there is one."""
    if missing or extra:
        sys.exit(f"{what}: missing {sorted(missing)}, not expected {sorted(extra)}")
    print(f"{what}: as it should be")


def wheel(path: Path) -> None:
    """The package, all of it, and its metadata with the licence."""
    names = set(zipfile.ZipFile(path).namelist())
    metadata = {name for name in names if ".dist-info/" in name}
    check(path.name, MODULES - names, names - MODULES - metadata)
    licence = any(name.endswith("licenses/LICENSE") for name in metadata)
    check(f"{path.name} licence", set() if licence else {"LICENSE"}, set())


def sdist(path: Path) -> None:
    """The package, its tests and docs; nothing that a build or an editor left behind."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    odd = {n for n in names if any(part in n for part in ("__pycache__", ".nox", ".venv", "benchmarks/"))}
    check(path.name, (MODULES | NEEDED) - names, odd)


if __name__ == "__main__":
    for argument in map(Path, sys.argv[1:]):
        (wheel if argument.suffix == ".whl" else sdist)(argument)
