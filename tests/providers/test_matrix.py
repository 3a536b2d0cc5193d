"""Every wording of a refusal, on every way through litellm, whatever the provider takes: step, value and calls."""

import logging
from typing import Any

import pytest
from pydantic import BaseModel

from asyncmem.errors import ConfigurationError, ModelError
from asyncmem.testing import FORMAT_REFUSALS, Behaviour, ProviderSimulator

from ..unit.llm.schemas import Free, Ids, Node, Shapes
from .matrix import CASES, ERRORS, PROMPT, SAID, TAKES, Case, cell, page, play
from .paths import PATHS, Path, llm_for, sent
from .table import PAGE

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_right_step_right_value_few_calls(case: Case, provider: ProviderSimulator) -> None:
    """The right step answers with the right value, after one call a step, and with one call from then on."""
    outcome = await play(case, provider)
    assert outcome.tiers == (case.steps[-1], case.steps[-1])
    assert outcome.values == (Ids(memory_ids=["3", "1"]),) * 2
    assert outcome.sent == outcome.counted == (len(case.steps), 1)
    assert outcome.repairs == 0


def test_page_is_what_the_suite_measures() -> None:
    """docs/providers.md says of every case and failure what the tests here expect."""
    cells = {str(case): cell(case.steps[-1], len(case.steps)) for case in CASES}
    errors = {(kind, path.model): error.__name__ for kind, error in ERRORS.items() for path in PATHS}
    assert PAGE.read_text() == page(cells, errors)
    assert len(CASES) > 690
    assert {case.style for case in CASES if case.is_refused} == set(FORMAT_REFUSALS)


INEXPRESSIBLE: dict[type[BaseModel], dict[str, Any]] = {
    Node: {"name": "a", "children": [{"name": "b", "children": []}]},
    Free: {"values": {"any": 1, "key": "x"}},
    Shapes: {"shapes": [{"side": 2.0}, {"radius": 1.0}]},
}


@pytest.mark.parametrize("takes", ["all", "nothing"])
@pytest.mark.parametrize("schema", INEXPRESSIBLE, ids=lambda schema: schema.__name__)
@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_what_plain_schema_cannot_say_works_from_json_mode_on(
    path: Path,
    schema: type[BaseModel],
    takes: str,
    provider: ProviderSimulator,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A recursive model, a union of objects and free keys come back whole at JSON mode or as text; it is logged."""
    caplog.set_level(logging.INFO, "asyncmem.llm")
    provider.behaviour = Behaviour(says=INEXPRESSIBLE[schema], accepts=TAKES[takes])
    llm = llm_for(path, provider)
    done = await llm.structured(PROMPT, schema)
    assert done.value == schema.model_validate(INEXPRESSIBLE[schema])
    is_refused = path.formats.get("json_object") not in (None, *TAKES[takes])
    assert done.tier == ("text" if is_refused else "json_object")
    assert caplog.messages[0].endswith(f"(plain JSON schema can't say {schema.__name__})")
    provider.forget()
    assert (await llm.structured(PROMPT, schema)).usage.calls == sent(provider) == 1


@pytest.mark.parametrize("schema", INEXPRESSIBLE, ids=lambda schema: schema.__name__)
@pytest.mark.parametrize("tier", ["native", "json_schema"])
async def test_what_a_pinned_tier_cannot_say_is_refused_at_once_by_name(
    schema: type[BaseModel], tier: Any, provider: ProviderSimulator
) -> None:
    """Where the pinned tier can't express the model, its name is in the error, and nothing is sent."""
    with pytest.raises(ConfigurationError, match=f"{schema.__name__} refers to itself, has a union of objects or free"):
        await llm_for(PATHS[0], provider, tier=tier).structured(PROMPT, schema)
    assert provider.received == []


async def test_strict_refused_plain_schema_taken(provider: ProviderSimulator) -> None:
    """A server that refuses strict schemas only gets the plain one."""
    provider.behaviour = Behaviour(says=SAID, strict=False, style="groq_schema")
    done = await llm_for(PATHS[0], provider).structured(PROMPT, Ids)
    assert (done.tier, done.usage.calls) == ("json_schema", 2)
    plain = provider.received[-1].body["response_format"]["json_schema"]
    assert plain == {
        "name": "Ids",
        "schema": {
            "type": "object",
            "properties": {"memory_ids": {"type": "array", "items": {"type": "string"}}},
            "required": ["memory_ids"],
        },
    }


@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_schema_is_in_the_prompt_at_every_step(path: Path, provider: ProviderSimulator) -> None:
    """The schema and the word JSON reach the provider in words, whatever the step."""
    provider.behaviour = Behaviour(says=SAID, accepts=())
    await llm_for(path, provider).structured(PROMPT, Ids)
    for request in provider.received:
        if not request.path.endswith("/api/show"):
            text = str(request.body)
            assert "JSON schema" in text
            assert '"memory_ids"' in text


async def test_models_that_litellm_knows_to_lack_it_cost_one_call(provider: ProviderSimulator) -> None:
    """For gpt-4 litellm itself refuses the format: nothing is sent for that."""
    provider.behaviour = Behaviour(says=SAID)
    done = await llm_for(Path("openai/gpt-4"), provider).structured(PROMPT, Ids)
    assert (done.tier, done.usage.calls, len(provider.received)) == ("text", 1, 1)


async def test_parameters_a_model_refuses_are_dropped_once(provider: ProviderSimulator) -> None:
    """max_tokens is renamed, temperature dropped, and both stay so for the next request."""
    provider.behaviour = Behaviour(says=SAID, fails=("max_tokens", "temperature"))
    llm = llm_for(PATHS[0], provider)
    done = await llm.structured(PROMPT, Ids, max_tokens=99)
    assert done.usage.calls == 3
    await llm.structured(PROMPT, Ids, max_tokens=99)
    last = provider.received[-1].body
    assert len(provider.received) == 4
    assert last["max_completion_tokens"] == 99
    assert "max_tokens" not in last
    assert "temperature" not in last


async def test_gateway_that_wants_the_word_json(provider: ProviderSimulator) -> None:
    """A gateway that demands the word JSON in the prompt finds it there."""
    provider.behaviour = Behaviour(says=SAID, fails=("json_word",))
    done = await llm_for(PATHS[0], provider).structured(PROMPT, Ids)
    assert done.value == Ids(memory_ids=["3", "1"])


async def test_reference_case_seven(provider: ProviderSimulator) -> None:
    """Native and schema refused, JSON mode taken, a reasoning block and a fence around: one step, remembered."""
    said = '<think>Rows 3 and 1.</think>\n```json\n{"memory_ids": ["3", "3", 1, "42"]}\n```'
    provider.behaviour = Behaviour(says=said, accepts=("json_object",))
    llm = llm_for(PATHS[0], provider)
    done = await llm.structured(PROMPT, Ids)
    assert (done.tier, done.value.memory_ids) == ("json_object", ["3", "3", "1", "42"])
    provider.forget()
    assert (await llm.structured(PROMPT, Ids)).tier == "json_object"
    assert len(provider.received) == 1


@pytest.mark.parametrize("kind", ["wrong_key", "rate_limit", "quota", "forbidden", "slow"])
async def test_other_failures_never_step_down(kind: str, provider: ProviderSimulator) -> None:
    """A wrong key, a rate limit, no quota or a time-out is raised as what it is, and nothing is learned."""
    provider.behaviour = Behaviour(says=SAID, fails=(kind,) * 9)
    llm = llm_for(PATHS[0], provider, retries=0, timeout=0.3)
    with pytest.raises(ModelError):
        await llm.structured(PROMPT, Ids)
    assert [request.wanted.format for request in provider.received] == ["json_schema"]
    assert llm.abilities.dump() == []
