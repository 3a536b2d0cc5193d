"""Which database and which model a command uses, when nobody says."""

import os
import re
from collections.abc import Mapping

from asyncmem import ConfigurationError, LLMSettings

KEYS = {
    "OPENAI_API_KEY": "openai/gpt-4o-mini",
    "ANTHROPIC_API_KEY": "anthropic/claude-haiku-4-5",
    "GEMINI_API_KEY": "gemini/gemini-2.5-flash",
    "MISTRAL_API_KEY": "mistral/mistral-small-latest",
    "GROQ_API_KEY": "groq/llama-3.3-70b-versatile",
    "DEEPSEEK_API_KEY": "deepseek/deepseek-chat",
    "OPENROUTER_API_KEY": "openrouter/openai/gpt-4o-mini",
    "XAI_API_KEY": "xai/grok-3-mini",
}
"""A small model of each provider whose key may be in the environment; the first that is found is used."""

NO_MODEL = """\
no model is named, and no provider's key is in the environment. Do one of these:
  set ASYNCMEM_MODEL (or pass --model) to any litellm name, such as openai/gpt-4o-mini, and the provider's key
  run a model of your own: ollama pull qwen2.5 && export ASYNCMEM_MODEL=ollama_chat/qwen2.5
  name an OpenAI-compatible server: ASYNCMEM_MODEL=openai/NAME ASYNCMEM_API_BASE=http://127.0.0.1:PORT/v1
  in a clone of the repository: nox -s demo fetches a small open model and runs the demo with it"""


def choose_db(named: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """``--db``, else ``ASYNCMEM_DB``, else the embedded server."""
    return named or environ.get("ASYNCMEM_DB") or "embedded"


def without_password(db: str) -> str:
    """What a database is called, fit to be shown: a URI without user, password and options."""
    return re.sub(r"//[^/]*@", "//", db).split("?")[0]


def choose_model(named: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """``--model``, else ``ASYNCMEM_MODEL``, else a small model of the provider whose key is there.

    Raises:
        ConfigurationError: nothing says which.
    """
    model = named or environ.get("ASYNCMEM_MODEL")
    found = model or next((KEYS[key] for key in KEYS if environ.get(key)), None)
    if found is None:
        raise ConfigurationError(NO_MODEL)
    return found


def llm_settings(environ: Mapping[str, str] = os.environ) -> LLMSettings:
    """``ASYNCMEM_API_BASE`` and ``ASYNCMEM_API_KEY``, where they are set. A server of one's own may be slow."""
    base = environ.get("ASYNCMEM_API_BASE")
    patience = {"timeout": 240.0, "deadline": 480.0, "retries": 0} if base else {}
    given = {"api_base": base, "api_key": environ.get("ASYNCMEM_API_KEY"), **patience}
    return LLMSettings.model_validate({name: value for name, value in given.items() if value is not None})
