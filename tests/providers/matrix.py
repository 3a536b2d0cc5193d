"""The matrix as data: what is asked in each case, what must come of it, what came of it, and the page that says so."""

from dataclasses import dataclass

from asyncmem.errors import (
    ContextTooLongError,
    ModelAuthenticationError,
    ModelError,
    ModelNotFoundError,
    ModelQuotaError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
    ModelUnreachableError,
)
from asyncmem.testing import FORMAT_REFUSALS, Behaviour, ProviderSimulator
from asyncmem.types import Tier

from ..unit.llm.schemas import Ids
from .paths import PATHS, Path, llm_for, sent

PROMPT = [{"role": "user", "content": "Which memories matter?"}]
SAID = {"memory_ids": ["3", "1"]}
TAKES: dict[str, tuple[str, ...]] = {
    "all": ("json_schema", "json_object"),
    "schema only": ("json_schema",),
    "object only": ("json_object",),
    "nothing": (),
}
KEYWORDS = ("gemini", "groq_schema", "sglang", "vllm")
"""Wordings that blame a keyword of the schema, not the type of format."""
ERRORS: dict[str, type[ModelError]] = {
    "rate_limit": ModelRateLimitError,
    "quota": ModelQuotaError,
    "server_error": ModelUnavailableError,
    "overloaded": ModelUnavailableError,
    "overloaded529": ModelUnavailableError,
    "bad_gateway": ModelUnavailableError,
    "wrong_key": ModelAuthenticationError,
    "key_echo": ModelAuthenticationError,
    "forbidden": ModelAuthenticationError,
    "no_credit": ModelQuotaError,
    "no_model": ModelNotFoundError,
    "too_long": ContextTooLongError,
    "policy": ModelRefusedError,
    "prompt_echo": ModelRequestError,
    "too_many_tokens": ModelRequestError,
    "garbage": ModelUnavailableError,
    "no_choices": ModelUnavailableError,
    "no_message": ModelUnavailableError,
    "drop": ModelUnavailableError,
    "half": ModelUnavailableError,
    "slow": ModelTimeoutError,
}
"""What each failure is, on every path."""


@dataclass(frozen=True)
class Case:
    """One provider: a way to it, how it words its refusals, and what it takes."""

    path: Path
    style: str
    takes: str

    def __str__(self) -> str:
        return f"{self.path.model}-{self.style}-{self.takes}"

    @property
    def is_refused(self) -> bool:
        """The first step is refused; where it is not, the wording plays no part."""
        return self.path.formats[self.path.start] not in TAKES[self.takes]

    @property
    def steps(self) -> list[Tier]:
        """The steps that the first request must take: one call each, the last one answers."""
        steps = [self.path.start]
        while self.path.formats.get(steps[-1]) not in (None, *TAKES[self.takes]):
            steps.append(self._below(steps[-1]))
        return steps

    def _below(self, step: Tier) -> Tier:
        if self.style == self.path.model.partition("/")[0] == "litellm_proxy":
            return "text"  # litellm knows its own proxy's words for "no response_format at all"
        if step == "native" and self.style in KEYWORDS:
            return "json_schema"
        return "text" if step == "json_object" else "json_object"


CASES = [
    case
    for path in PATHS
    for style in FORMAT_REFUSALS
    for takes in TAKES
    if (case := Case(path, style, takes)).is_refused or style == path.dialect
]


@dataclass(frozen=True)
class Outcome:
    """What came of a case, each for the first request and for the next: tiers, values, and calls, sent and counted."""

    tiers: tuple[Tier, Tier]
    values: tuple[Ids, Ids]
    sent: tuple[int, int]
    counted: tuple[int, int]
    repairs: int


async def play(case: Case, provider: ProviderSimulator) -> Outcome:
    """Ask twice."""
    provider.forget()
    provider.behaviour = Behaviour(says=SAID, accepts=TAKES[case.takes], style=case.style)
    llm = llm_for(case.path, provider)
    first = await llm.structured(PROMPT, Ids)
    spent = sent(provider)
    again = await llm.structured(PROMPT, Ids)
    return Outcome(
        (first.tier, again.tier),
        (first.value, again.value),
        (spent, sent(provider) - spent),
        (first.usage.calls, again.usage.calls),
        first.repairs,
    )


async def fail(kind: str, path: Path, provider: ProviderSimulator) -> type[ModelError]:
    """The class of the error that a failure becomes."""
    provider.forget()
    provider.behaviour = Behaviour(fails=(kind,) * 9)
    try:
        await llm_for(path, provider, retries=0, timeout=0.3 if kind == "slow" else 20).structured(PROMPT, Ids)
    except ModelError as error:
        return generally(type(error))
    raise AssertionError(f"{kind} was no failure")


def generally(error: type[ModelError]) -> type[ModelError]:
    """The class; a connection that broke is not told from one that was never made on all paths."""
    return ModelUnavailableError if error is ModelUnreachableError else error


def cell(tier: Tier, calls: int) -> str:
    """One cell of the page."""
    return f"{tier} {calls}"


def page(cells: dict[str, str], errors: dict[tuple[str, str], str]) -> str:
    """The page, from the cell of each case and the error of each failure on each path; equal ones stand together."""
    tables: dict[str, list[str]] = {}
    for path in PATHS:
        tables.setdefault(_table(path, cells), []).append(f"`{path.model}`")
    told = [f"### {', '.join(models)}\n\n{table}" for table, models in tables.items()]
    failures = "\n".join(f"| `{kind}` | {_classes(kind, errors)} |" for kind in ERRORS)
    return "\n\n".join([INTRODUCTION, *told, FAILED.format(failures)])


def _table(path: Path, cells: dict[str, str]) -> str:
    own = {takes: cells.get(str(Case(path, path.dialect, takes)), "") for takes in TAKES}
    wordings: dict[tuple[str, ...], list[str]] = {}
    for style in sorted(FORMAT_REFUSALS):
        row = tuple(cells.get(str(Case(path, style, takes)), own[takes]) for takes in TAKES)
        wordings.setdefault(row, []).append(style)
    lines = [f"| {' | '.join(row)} | {', '.join(styles)} |" for row, styles in sorted(wordings.items())]
    return "\n".join([f"| {' | '.join(TAKES)} | refusals worded by |", f"|{'---|' * (len(TAKES) + 1)}", *lines])


def _classes(kind: str, errors: dict[tuple[str, str], str]) -> str:
    """The error of a failure; where it differs, on which paths."""
    found: dict[str, list[str]] = {}
    for path in PATHS:
        found.setdefault(errors[kind, path.model], []).append(f"`{path.model}`")
    ordered = sorted(found, key=lambda name: -len(found[name]))
    return "; ".join([f"`{ordered[0]}`", *(f"`{name}` on {', '.join(found[name])}" for name in ordered[1:])])


INTRODUCTION = """\
# Providers

What the [ladder](models.md#a-value-from-any-of-them) makes of every provider's way to say no. A command writes this
page: `python -m tests.providers.table --write` asks a simulated provider over HTTP, through litellm, and without
`--write` it prints what it measures. The suite does the same at the oldest litellm that is supported, at the locked
version and at the newest, and fails where a cell differs.

## Tier and calls

Each table is for some ways through litellm. A column is what the provider takes: `json_schema` and `json_object`, one
of them, or no `response_format` at all. A row is how refusals are worded, status and body, taken from what providers
really send (`FORMAT_REFUSALS` in `asyncmem.testing`). A cell is the tier that answers, and the calls that the first
request takes, refused ones included. **From the second request on it is one call, in every cell.**

* No wording is left out: each is tried on every way. Only where the first tier is taken at once nothing is refused and
  the wording plays no part: such a cell is measured once for each way, and shown in every row.
* A wording that blames a keyword of the schema (`gemini`, `groq_schema`, `sglang`, `vllm`) leads to `json_schema`
  first; one that blames the type of format leads to `json_object` at once, so with one call less.
* `plain`, `bare`, `html` and `empty` say nothing. A lower tier is tried, and remembered only because it worked.
* To Anthropic and Bedrock litellm sends nothing for `json_object`. What is asked for stands in the prompt, so that
  tier answers where nothing is taken.
* Gemini models that litellm doesn't know get JSON mode for every tier above `text`.
* litellm itself knows its proxy's words for "no `response_format`": there the way leads straight to `text`.
* DeepSeek begins at `json_object`: its API refuses schemas, whatever litellm's list says."""

FAILED = """\
## Everything else

What other failures become, on every way above, when all retries are used up:

| failure | error |
|---|---|
{}

The failures are `FAILURES` in `asyncmem.testing`. Besides, `drop` closes the connection, `half` does so in the middle
of the answer, and `slow` never answers; where litellm says no more than "connection error", the former two are the
subclass `ModelUnreachableError`. `key_echo` and `prompt_echo` answer with what they were sent: no error, log line or
`repr` shows it. None of them steps down but `prompt_echo`, a 400 without a reason: when no tier works, the first
tier's error is raised, and nothing is remembered.
"""
