"""Many memories as one, in parts where they exceed a request; what a summary loses stays as it was."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread

from ..cleaning import MAX_TEXT
from ..errors import OptimizationError
from ..types import UserMemory
from .merging import merged
from .model import OptimizationModel
from .parts import PER_MEMORY, cost, parts_of, storable
from .preserving import Fact, Lost, preserved
from .supporting import added, invented, is_foreign, supported
from .wording import Summary, summary_prompt, told_again


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, and the memories that it says.

    Attributes:
        text: a source's own, or a summary.
        sources: whose facts are in it.
    """

    text: str
    sources: tuple[UserMemory, ...]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A model's text, and what is wrong with it."""

    text: str
    problem: str = ""
    invented: tuple[Fact, ...] = ()
    missing: tuple[Lost, ...] = ()
    lacking: tuple[str, ...] = ()
    foreign: bool = False
    added: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        return not (self.problem or self.invented or self.foreign)


async def summarize(memories: Sequence[UserMemory], model: OptimizationModel) -> list[UserMemory]:
    """The memories as one that says all of them, or as few as the model manages; what it loses stays as it is.

    Suspect memories and those that expire stay as they are: the ones are never shown to a model, the others' facts
    would stay longer than they may. With fewer than two to summarise, no model is asked.

    Raises:
        OptimizationError: the model's text is blank, longer than the memories, in another language, or made up.
        ModelError: the model could not be asked.
    """
    kept = [m for m in memories if stays(m)]
    pieces = [Piece(m.memory, (m,)) for m in memories if not stays(m)]
    while True:  # each round has fewer tokens than the one before
        parts = await anyio.to_thread.run_sync(_parts, pieces, model.budget)
        if all(len(part) < 2 for part in parts):
            break
        made = await _side_by_side([[pieces[i] for i in part] for part in parts], model)
        before, pieces = pieces, [piece for summaries, _ in made for piece in summaries]
        kept += [source for _, lost_ones in made for source in lost_ones]
        if len(parts) == 1 or not await anyio.to_thread.run_sync(_is_shorter, pieces, before):
            break
    return await anyio.to_thread.run_sync(_finished, pieces, kept)


def stays(memory: UserMemory) -> bool:
    """Whether a memory must not be merged into others."""
    return memory.pinned or memory.expires_at is not None or bool(memory.metadata.get("suspect"))


def _parts(pieces: Sequence[Piece], budget: int) -> list[list[int]]:
    return parts_of([cost(piece.text) for piece in pieces], budget)


def _is_shorter(pieces: Sequence[Piece], than: Sequence[Piece]) -> bool:
    return sum(cost(piece.text) for piece in pieces) < sum(cost(piece.text) for piece in than)


def _finished(pieces: Sequence[Piece], kept: Sequence[UserMemory]) -> list[UserMemory]:
    results: list[UserMemory] = []
    for piece in pieces:
        if len(piece.sources) == 1:
            results.append(piece.sources[0])
        else:
            fields = merged(piece.sources)
            results += [fields.memory(text) for text in storable(piece.text)]
    return results + list(kept)


Made = tuple[list[Piece], list[UserMemory]]
"""Summaries, and the sources that they don't say."""


async def _side_by_side(parts: Sequence[Sequence[Piece]], model: OptimizationModel) -> list[Made]:
    """Every part summarised; the first error ends all."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_part(part, model)) for part in parts]
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None
    return [task.result() for task in tasks]


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first of several errors."""
    return group.exceptions[0]


async def _part(pieces: Sequence[Piece], model: OptimizationModel) -> Made:
    """One part as one summary: asked for once, and once more if something is missing or made up."""
    if len(pieces) < 2:
        return list(pieces), []
    sources = [source for piece in pieces for source in piece.sources]
    texts = [piece.text for piece in pieces]
    prompt = summary_prompt(texts)
    first = await _ask(prompt, texts, sources, model)
    if first.problem:
        raise OptimizationError(f"the model's summary {first.problem}")
    model.missing += first.missing
    judged = [first]
    if first.missing or first.added or not first.is_usable:
        model.asked_again = True
        told = told_again(
            first.text,
            missing=first.lacking,
            invented=[fact.value for fact in first.invented],
            foreign=first.foreign,
            added=() if first.foreign else first.added,
        )
        judged.append(await _ask([*prompt, *told], texts, sources, model))
    usable = [each for each in judged if each.is_usable]
    if not usable:
        raise OptimizationError(_complaint(judged[-1]))
    best = min(usable, key=lambda each: (len(each.missing) + len(each.added), len(each.text)))
    return await anyio.to_thread.run_sync(_made, best, list(pieces), sources)


def _complaint(judged: _Judged) -> str:
    """What is wrong, without the words: an error may be logged."""
    if judged.problem:
        return f"the model's summary {judged.problem}"
    if judged.foreign:
        return "the model's summary is in another language than the memories, or about something else"
    kinds = ", ".join(sorted({fact.kind for fact in judged.invented}))
    return f"the model's summary holds what no memory says, twice: {kinds}"


async def _ask(
    prompt: Sequence[dict[str, str]], texts: Sequence[str], sources: Sequence[UserMemory], model: OptimizationModel
) -> _Judged:
    text = (await model.structured(prompt, Summary)).memory.strip()
    if not text:
        return _Judged(text, "is blank")
    if await model.count_tokens([text]) > await model.count_tokens(texts) + PER_MEMORY * len(texts):
        return _Judged(text, "is longer than the memories together")
    if any(len(piece) > MAX_TEXT for piece in storable(text)):
        return _Judged(text, f"has a sentence of more than {MAX_TEXT:,} characters")
    return await anyio.to_thread.run_sync(_judge, text, sources)


def _judge(text: str, sources: Sequence[UserMemory]) -> _Judged:
    result = [UserMemory(memory=piece) for piece in storable(text)]
    made_up = tuple(invented(sources, result))
    missing = preserved(sources, result)
    lacking = tuple(source.memory for source, found in zip(sources, missing, strict=True) if found is not None)
    found = tuple(each for each in missing if each is not None)
    return _Judged(text, "", made_up, found, lacking, is_foreign(sources, text), tuple(added(sources, text)))


def _made(judged: _Judged, pieces: list[Piece], sources: Sequence[UserMemory]) -> Made:
    """The summary as far as the sources say it, and the sources that it doesn't say.

    A summary that says fewer than two sources, or takes more room than those that it says, is of no use.
    """
    text = supported(sources, judged.text)
    if not text:
        return pieces, []
    missing = preserved(sources, [UserMemory(memory=piece) for piece in storable(text)])
    said = tuple(source for source, found in zip(sources, missing, strict=True) if found is None)
    left = [source for source, found in zip(sources, missing, strict=True) if found is not None]
    if len(said) < 2 or cost(text) > sum(cost(source.memory) for source in said):
        return pieces, []
    return [Piece(text, said)], left
