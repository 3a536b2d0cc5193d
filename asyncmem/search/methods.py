"""The retrieval methods by name, and what holds for all of them."""

import reprlib
from dataclasses import dataclass, replace
from typing import Literal

from ..cleaning import encodable
from ..errors import InvalidQueryError, StructuredOutputError, UnknownRetrievalMethodError
from ..types import MemorySearchResult
from .agentic import Agentic
from .recency import FirstN, LastN
from .retriever import Retriever, SearchRequest, Sources

OnFailure = Literal["raise", "last_n"]
METHODS: dict[str, Retriever] = {"last_n": LastN(), "first_n": FirstN(), "agentic": Agentic()}
MAX_QUERY = 8_000
"""Characters that a query may have."""


def retriever(method: object) -> Retriever:
    """The method of that name.

    Raises:
        UnknownRetrievalMethodError: there is none.
    """
    found = METHODS.get(method) if isinstance(method, str) else None
    if found is None:
        raise UnknownRetrievalMethodError(
            f"unknown retrieval method {reprlib.repr(method)}: there are {', '.join(METHODS)}"
        )
    return found


def clean_query(query: object, *, needed: bool) -> str | None:
    """The query, stripped.

    Raises:
        InvalidQueryError: it is blank and the method needs one, too long, or not text.
    """
    if query is not None and not isinstance(query, str):
        raise InvalidQueryError(f"query must be a str, not {type(query).__name__}")
    text = (query or "").strip()
    if not encodable(text):
        raise InvalidQueryError("the query holds a lone surrogate, which no encoding can hold: remove it")
    if needed and not text:
        raise InvalidQueryError("this retrieval method needs a query that is not blank")
    if len(text) > MAX_QUERY:
        raise InvalidQueryError(f"the query has {len(text):,} characters: at most {MAX_QUERY:,} are allowed")
    return text or None


@dataclass(frozen=True, slots=True)
class Plan:
    """A search that was checked and can be run."""

    method: Retriever
    request: SearchRequest
    on_failure: OnFailure

    async def run(self, sources: Sources) -> MemorySearchResult:
        """Search. A reply that can't be read gives the newest, marked as degraded, where the caller allowed it."""
        try:
            return await self.method.retrieve(self.request, sources)
        except StructuredOutputError:
            if self.on_failure == "raise":
                raise
            newest = await LastN().retrieve(self.request, sources)
            return replace(newest, degraded=True)


def to_plan(method: object, request: SearchRequest, on_failure: object) -> Plan:
    """A checked search.

    Raises:
        UnknownRetrievalMethodError: there is no such method.
        InvalidQueryError: the query is blank and the method needs one, or an option is unknown.
    """
    if on_failure not in ("raise", "last_n"):
        raise InvalidQueryError(f"on_failure must be 'raise' or 'last_n', not {reprlib.repr(on_failure)}")
    chosen = retriever(method)
    query = clean_query(request.query, needed=chosen.needs_query)
    return Plan(chosen, replace(request, query=query), on_failure)
