"""What model calls took. Apart from the other values, since errors carry it as well."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls took.

    Attributes:
        calls: requests sent to the provider, refused ones included.
        prompt_tokens: as the provider counted them.
        completion_tokens: as the provider counted them.
        cost: US dollars; ``None`` when the price of any call is unknown, never 0 for unknown.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        known = self.cost is not None and other.cost is not None
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            (self.cost or 0.0) + (other.cost or 0.0) if known else None,
        )
