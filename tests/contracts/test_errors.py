"""The error tree is what its drawing says."""

import inspect

import asyncmem
from asyncmem import errors


def test_tree_matches_its_drawing() -> None:
    """Every class stands in the drawing, under its parent, and every drawn name is a class."""
    lines = [
        line
        for line in (errors.__doc__ or "").splitlines()
        if "Error" in line and ("──" in line or "    Async" in line)
    ]
    drawn: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in lines:
        name = line.replace("│", " ").replace("├──", "   ").replace("└──", "   ").split()[0]
        depth = line.index(name)
        while path and path[-1][0] >= depth:
            path.pop()
        drawn[name] = path[-1][1] if path else "Exception"
        path.append((depth, name))
    classes = {n: c for n, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)}
    assert drawn == {name: cls.__bases__[0].__name__ for name, cls in classes.items()}


def test_every_error_is_public() -> None:
    """Every error can be imported from asyncmem."""
    classes = {n for n, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)}
    assert classes <= set(asyncmem.__all__)
