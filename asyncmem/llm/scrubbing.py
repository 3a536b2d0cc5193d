"""Taking keys and prompts out of text that providers wrote. Pure."""

import re
from collections.abc import Sequence

from .echoes import without_words

MAX_DETAIL = 300
"""Characters of a provider's own words that an error shows."""
_MAX_READ = 4_000


_SECRETS = re.compile(
    r"(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|key|tok)[-_][-_A-Za-z0-9.*]{6,}|AIza[-_A-Za-z0-9]{8,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{8,}"
    r"|eyJ[-_A-Za-z0-9.]{12,}|(?:bearer|basic)\s+[^\s,;'\"]+"
    r"|(?:authorization|x-api-key|api[_-]key|x-goog-api-key)['\"]?\s*[:=]\s*['\"]?[^\s,;'\"}]+|://[^/\s@]+:[^/\s@]+@"
    r"|[?&](?:key|code|sig|\w*(?:api_?key|token|secret|signature))=[^&\s'\"]+",
    re.IGNORECASE,
)
_SIGNS = "-_A-Za-z0-9.+/=*~"
_TOKEN = re.compile(
    r"(?P<said>(?i:\b(?:[a-z]+[_-])*(?:keys?|tokens?|secrets?|passwords?|credentials?|authorization))[\s'\"`:=(\[<{]+"
    r"(?:(?i:provided|given|used|supplied|received|sent|found|header|value|is|was|with|and|incorrect|invalid|unknown"
    r"|expired|revoked|you|id|string)[\s'\"`:=(\[<{]+){0,5})"
    rf"(?=[{_SIGNS}]{{16}})(?:(?=[{_SIGNS}]*[0-9*])|(?=[{_SIGNS}]*[A-Z])(?=[{_SIGNS}]*[a-z]))[{_SIGNS}]+"
)
"""A long mixed word behind one that announces a key: many providers' keys have no form of their own."""


_OUTPUT = re.compile(
    r"failed_generation|original response|raw response|response object|received\s*[=:]|traceback \(most recent",
    re.IGNORECASE,
)


_QUOTED = re.compile(
    r"failed_generation['\"]?\s*[:=]|(?:original|raw) response|invalid response object|traceback \(most recent",
    re.IGNORECASE,
)


def without_quotes(text: str) -> str:
    """The text up to where it surely quotes an answer or code: what decisions are made on.

    Words in there are no reason: of a reply that it can't read, litellm shows its own code and all that it was given.
    """
    return _QUOTED.split(text, maxsplit=1)[0]


def without_output(text: str) -> str:
    """The text up to where it begins to quote what the model said, or litellm's own code."""
    return _OUTPUT.split(text, maxsplit=1)[0]


def scrub(text: str, secrets: Sequence[str] = ()) -> str:
    """The text on one line without keys, headers and passwords."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    text = _TOKEN.sub(r"\g<said>***", _SECRETS.sub("***", text))
    return " ".join(text.split())


def shown(text: str, secrets: Sequence[str] = (), prompt: Sequence[str] = ()) -> str:
    """What an error shows of a provider's words: no key, nothing of the model's output or of the prompt, and little."""
    plain = scrub(without_output(text)[:_MAX_READ], secrets)
    plain = without_words(plain, [*prompt, *secrets])
    return plain if len(plain) <= MAX_DETAIL else f"{plain[: MAX_DETAIL - 1]}…"
