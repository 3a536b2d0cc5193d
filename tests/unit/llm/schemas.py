"""Models that the tests of the llm room ask for."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Ids(BaseModel):
    """One list field: the shape of a search's answer."""

    memory_ids: list[str]


class Step(BaseModel):
    """One operation of a plan."""

    op: Literal["add", "update", "delete"]
    memory: str | None = None
    topics: list[str] = Field(default_factory=list)


class Plan(BaseModel):
    """A list of objects: the shape of a capture's answer."""

    operations: list[Step]


class Profile(BaseModel):
    """Several fields, none of them required."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    age: int | None = None


class Node(BaseModel):
    """Refers to itself."""

    name: str
    children: list["Node"] = Field(default_factory=list)


class Free(BaseModel):
    """Has free keys."""

    values: dict[str, Any]


class Square(BaseModel):
    """One shape."""

    side: float


class Circle(BaseModel):
    """Another one."""

    radius: float


class Shapes(BaseModel):
    """Has a union of objects."""

    shapes: list[Square | Circle]
