"""Importing litellm late: at the first model call, in a worker thread, with its side effects undone."""

import importlib
import logging
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

import anyio.to_thread

_QUIET = {
    # no download of its price list at import (5 s, synchronous); Source: litellm/__init__.py, get_model_cost_map
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # no load_dotenv() of whatever .env lies above litellm's own file; Source: litellm/_process_defaults.py
    "LITELLM_MODE": "PRODUCTION",
    "PYTHON_DOTENV_DISABLED": "1",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_lock = threading.Lock()
_litellm: ModuleType | None = None


async def load_litellm() -> ModuleType:
    """litellm, imported once however many ask, without stalling the event loop for seconds.

    If the application imported it before, it is taken as it is: its settings are the application's.
    """
    if _litellm is not None:
        return _litellm
    return await anyio.to_thread.run_sync(_load, abandon_on_cancel=True)


async def load_numpy() -> ModuleType:
    """numpy, imported without stalling the event loop: only embeddings need it."""
    loaded = sys.modules.get("numpy")
    return loaded if loaded is not None else await anyio.to_thread.run_sync(importlib.import_module, "numpy")


def _load() -> ModuleType:
    global _litellm
    with _lock:
        if _litellm is None:
            _litellm = sys.modules.get("litellm") or _import_quietly()
    return _litellm


def _import_quietly() -> ModuleType:
    before = {name: list(logging.getLogger(name).handlers) for name in _LOGGERS}
    with environment(_QUIET):
        module = importlib.import_module("litellm")
        _load_beta_headers()
    module.suppress_debug_info = True  # type: ignore[attr-defined]  # it prints banners to stdout at every error
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        # its own handlers write to stderr, and every line a second time; without any, Python's last resort would
        logger.handlers = before[name] or [logging.NullHandler()]
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)  # below, it logs prompts
    return module


def _load_beta_headers() -> None:
    """Let litellm read its own copy of Anthropic's header list now; later it would download one, synchronously.

    Source: litellm/anthropic_beta_headers_manager.py; versions without it download nothing.
    """
    try:
        manager = importlib.import_module("litellm.anthropic_beta_headers_manager")
    except ModuleNotFoundError:
        return
    getattr(manager, "_load_beta_headers_config", dict)()


@contextmanager
def environment(values: dict[str, str]) -> Generator[None]:
    """The environment with these variables, where the application did not set them itself."""
    added = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
