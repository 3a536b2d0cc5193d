"""The model as strategies see it."""

import pytest
from pydantic import BaseModel

from asyncmem.errors import ConfigurationError, ModelError
from asyncmem.llm import LLM, ChatReply, TokenCount
from asyncmem.optimize import OptimizationModel
from asyncmem.optimize.model import BUDGET
from asyncmem.prompts import estimate_tokens
from asyncmem.testing import ScriptedModel
from asyncmem.types import Usage

pytestmark = pytest.mark.anyio
ASKED = [{"role": "user", "content": "?"}]


class Answer(BaseModel):
    """One text."""

    text: str


async def test_usage_adds_up() -> None:
    """Every call's cost is in the sum, whichever way the model was asked."""
    reply = ChatReply(content='{"text": "yes"}', usage=Usage(1, 10, 5, 0.5))
    async with ScriptedModel([reply, reply]) as scripted:
        model = OptimizationModel(LLM(scripted))
        assert (await model.structured(ASKED, Answer)).text == "yes"
        assert await model.complete(ASKED) == '{"text": "yes"}'
    assert model.usage == Usage(2, 20, 10, 1.0)


async def test_failed_calls_cost_as_well() -> None:
    """What a call cost that failed is in the sum, too."""
    nonsense = ChatReply(content="?", usage=Usage(1, 10, 5, 0.5))
    refused = ChatReply(content=None, refusal="no", usage=Usage(1, 1, 1, 0.25))
    async with ScriptedModel([nonsense, nonsense, nonsense, refused]) as scripted:
        model = OptimizationModel(LLM(scripted))
        with pytest.raises(ModelError):
            await model.structured(ASKED, Answer)
        assert model.usage == Usage(3, 30, 15, 1.5)
        with pytest.raises(ModelError):
            await model.complete(ASKED)
    assert model.usage.calls == 4


async def test_without_a_model_only_counting_works() -> None:
    """Making one costs nothing; asking is an error that says what to do; counting is an estimate."""
    model = OptimizationModel(None)
    assert (model.budget, model.usage, model.asked_again, model.missing) == (BUDGET, Usage(), False, [])
    for asked in (model.structured(ASKED, Answer), model.complete(ASKED)):
        with pytest.raises(ConfigurationError, match="MemoryManager"):
            await asked
    assert await model.counted(["a b", "c"]) == TokenCount(estimate_tokens("a b") + estimate_tokens("c"), exact=False)


async def test_tokens_are_the_models() -> None:
    """Counted by the model's tokenizer where it is known, and no request is sent."""
    assert await OptimizationModel(LLM("gpt-4o")).count_tokens(["hello world"]) == 2
    async with ScriptedModel() as scripted:
        assert await OptimizationModel(LLM(scripted), budget=7).count_tokens(["a"]) == estimate_tokens("a")
