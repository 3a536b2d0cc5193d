"""The ways through litellm that the matrix takes."""

from dataclasses import dataclass, field
from typing import Any

from asyncmem.llm import LLM, Abilities
from asyncmem.settings import LLMSettings
from asyncmem.testing import ProviderSimulator
from asyncmem.types import Tier

KEY = "sk-canary-4f9d2c7b1a"
HEADER = "canary-header-8812"


@dataclass(frozen=True)
class Path:
    """One model string, and what litellm sends for it.

    Attributes:
        model: the model string.
        dialect: which wire format it speaks.
        formats: what reaches the server at each step; a step that is not here reaches it as ``None``.
        start: the first step.
    """

    model: str
    dialect: str = "openai"
    formats: dict[Tier, str | None] = field(
        default_factory=lambda: {
            "native": "json_schema",
            "json_schema": "json_schema",
            "json_object": "json_object",
        }
    )
    start: Tier = "native"


_SCHEMA_ONLY: dict[Tier, str | None] = {"native": "json_schema", "json_schema": "json_schema"}
_MIME: dict[Tier, str | None] = {
    "native": "json_object",
    "json_schema": "json_object",
    "json_object": "json_object",
}

PATHS = [
    Path("openai/foo"),
    Path("hosted_vllm/foo"),
    Path("groq/foo"),
    Path("mistral/foo"),
    Path("deepseek/deepseek-chat", start="json_object"),
    Path("litellm_proxy/foo"),
    Path("anthropic/claude-sonnet-4-5", "anthropic", _SCHEMA_ONLY),
    Path("anthropic/claude-foo", "anthropic", _SCHEMA_ONLY),
    Path("gemini/gemini-2.5-flash", "gemini"),
    Path("gemini/gemini-foo", "gemini", _MIME),
    Path("ollama_chat/foo", "ollama"),
    Path("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", "bedrock", _SCHEMA_ONLY),
    Path("bedrock/meta.llama3-8b-instruct-v1:0", "bedrock", _SCHEMA_ONLY),
]
OPENAI_PATHS = [path for path in PATHS if path.dialect == "openai"]


def settings(path: Path, provider: ProviderSimulator, **more: Any) -> LLMSettings:
    """Settings that lead the model's calls to the simulator."""
    extra = {"extra_headers": {"x-team": HEADER}}
    if path.dialect == "bedrock":
        extra |= {
            "aws_access_key_id": "AKIACANARYCANARY",
            "aws_secret_access_key": KEY,
            "aws_region_name": "us-east-1",
            "aws_bedrock_runtime_endpoint": provider.root,
        }
        return LLMSettings(extra=extra, **more)
    base = provider.url if path.dialect == "openai" else provider.root
    return LLMSettings(api_base=base, api_key=KEY, extra=extra, **more)


def llm_for(path: Path, provider: ProviderSimulator, **more: Any) -> LLM:
    """A model on that path that knows nothing yet."""
    return LLM(path.model, settings(path, provider, **more), abilities=Abilities())


def sent(provider: ProviderSimulator) -> int:
    """Chat requests received; litellm asks Ollama for its model's details besides."""
    return sum(1 for request in provider.received if not request.path.endswith("/api/show"))
