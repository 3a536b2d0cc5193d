"""Taking keys and prompts out of text that providers wrote. Pure."""

import re
from collections.abc import Sequence

MAX_DETAIL = 300
"""Characters of a provider's own words that an error shows."""


_SECRETS = re.compile(
    r"(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|key|tok)[-_][-_A-Za-z0-9.*]{6,}|AIza[-_A-Za-z0-9]{8,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{8,}"
    r"|eyJ[-_A-Za-z0-9.]{12,}|(?:bearer|basic)\s+[^\s,;'\"]+"
    r"|(?:authorization|x-api-key|api[_-]key|x-goog-api-key)['\"]?\s*[:=]\s*['\"]?[^\s,;'\"}]+|://[^/\s@]+:[^/\s@]+@",
    re.IGNORECASE,
)


_OUTPUT = re.compile(
    r"failed_generation|original response|raw response|response object|received\s*[=:]|traceback \(most recent",
    re.IGNORECASE,
)


def without_output(text: str) -> str:
    """The text up to where it begins to quote what the model said, or litellm's own code."""
    return _OUTPUT.split(text, maxsplit=1)[0]


def scrub(text: str, secrets: Sequence[str] = (), limit: int = MAX_DETAIL) -> str:
    """The text on one line without keys, headers and passwords, cut to ``limit`` characters."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    plain = " ".join(_SECRETS.sub("***", text).split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def without_echo(text: str, prompt: Sequence[str], width: int = 16) -> str:
    """The text without any run of ``width`` characters or more that stands in the prompt too.

    Some servers answer a request that they refuse with the request itself.
    """
    told = " ".join(" ".join(prompt).split())
    kept: list[str] = []
    at = 0
    while at < len(text):
        end = at + width
        if end > len(text) or text[at:end] not in told:
            kept.append(text[at])
            at += 1
            continue
        while end < len(text) and text[at : end + 1] in told:
            end += 1
        kept.append("…")
        at = end
    return "".join(kept)
