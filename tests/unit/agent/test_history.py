"""What a prompt shows of a session, and when which part of it is summarised."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from asyncmem.agent.history import (
    NO_ANSWER,
    Past,
    folded,
    is_enough,
    past_of,
    shown,
    summary_prompt,
    system_text,
    to_fold,
)
from asyncmem.agent.remembering import conversation
from asyncmem.session_values import WINDOW_TOKENS, Exchange, Said, Terms, placed

AT = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def said(
    words: str = "hi",
    answer: str = "hello",
    *,
    tokens: int = 10,
    at: datetime = AT,
    capture: bool = True,
    terms: Terms | None = None,
) -> Said:
    """What a run said."""
    return Said(words, at, answer, at, tokens, capture, terms)


def session(*tokens: int) -> list[Exchange]:
    """Exchanges of such sizes, oldest first."""
    return [Exchange(f"{n}", n, said(f"said {n}", f"answer {n}", tokens=t), 1, t) for n, t in enumerate(tokens, 1)]


def seqs(past: Past) -> list[int]:
    """Places of what a past holds."""
    return [e.seq for e in past.exchanges]


# ---------------------------------------------------------------------------------------------------------- windows


def test_exchanges_are_captured_as_one_growing_conversation() -> None:
    """What follows soon and fits is captured with what was before it, from the same beginning on."""
    first = placed("a", said(), None, DAY)
    second = placed("b", said(at=AT + timedelta(hours=11)), first, DAY)
    assert [(e.seq, e.window, e.pending) for e in (first, second)] == [(1, 1, True), (2, 1, True)]
    assert second.weight > first.weight


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (said(), said(at=AT + timedelta(hours=12))),  # what was captured may be remembered no longer
        (said(tokens=WINDOW_TOKENS), said()),  # it is long enough
        (said(capture=False), said()),  # it is nobody's to capture
        (said(terms=Terms("a", None, "memory always")), said(terms=Terms("b", None, "memory always"))),
        (said(terms=Terms(None, "x", "memory always")), said(terms=Terms(None, "y", "memory always"))),
        (said(terms=Terms("a", None, "memory always")), said(terms=Terms("a", None, "memory propose"))),
        (said(), said(terms=Terms(None, None, "memory always"))),  # it is not known how it was captured
    ],
)
def test_a_new_conversation_begins(before: Said, now: Said) -> None:
    """Where the old one is long, is long ago, or was not captured on the same terms, another one begins."""
    first = placed("a", before, None, DAY)
    second = placed("b", now, first, DAY)
    assert (second.seq, second.window, second.pending) == (2, 2, True)


def test_what_is_not_to_be_captured_is_never_pending() -> None:
    """An exchange of an agent that captures nothing belongs to no conversation."""
    made = placed("a", said(capture=False), None, DAY)
    assert (made.window, made.pending) == (0, False)


def test_only_a_run_that_learns_the_same_has_handed_over_what_waited_before_it() -> None:
    """One that waits, that nobody captures, or that is captured for something else or nobody knows what, has not."""
    terms = Terms("a", None, "memory always")
    waiting = placed("a", said(terms=terms), None, DAY)
    handed = replace(waiting, pending=False)
    assert handed.has_none_waiting("memory always") is True
    assert handed.has_none_waiting("memory propose") is False
    assert waiting.has_none_waiting("memory always") is False
    assert placed("a", said(capture=False), None, DAY).has_none_waiting("memory always") is False
    assert replace(placed("a", said(), None, DAY), pending=False).has_none_waiting("memory always") is False


def test_a_conversation_begins_with_the_answer_before_it() -> None:
    """The user may refer to it; what the user said before it was captured, and is not told again."""
    stored = [replace(e, window=w) for e, w in zip(session(5, 5, 5), (1, 2, 2), strict=True)]
    told = [(m.role, m.content) for m in conversation(2, stored)]
    assert told == [
        ("assistant", "answer 1"),
        ("user", "said 2"),
        ("assistant", "answer 2"),
        ("user", "said 3"),
        ("assistant", "answer 3"),
    ]
    silent = [replace(stored[0], said=said(answer="")), replace(stored[1], said=said(answer=""))]
    assert [m.role for m in conversation(2, silent)] == ["user"]


# --------------------------------------------------------------------------------------------------------- the past


def test_a_past_begins_behind_its_newest_summary() -> None:
    """Of what was read, newest first, only what came after the newest summary is shown as it was said."""
    exchanges = session(5, 5, 5, 5)
    exchanges[0] = replace(exchanges[0], folded=True, summary="old")
    exchanges[1] = replace(exchanges[1], folded=True, summary="new")
    past = past_of(exchanges[::-1])
    assert (past.summary, seqs(past)) == ("new", [3, 4])
    assert past.last == exchanges[3]
    assert past_of([]) == Past(None, [])
    assert Past().last is None


def test_reading_back_ends_at_a_summary_or_far_beyond_the_budget() -> None:
    """No more is read of a session than a prompt or a summary can use."""
    newest = session(10, 10, 10)[::-1]
    assert not is_enough(newest, 8)
    assert is_enough(newest, 7)
    assert is_enough([*newest, replace(session(1)[0], summary="x")], 1000)


def test_what_fits_is_not_summarised() -> None:
    """A session within its budget is left as it is."""
    assert to_fold(Past(None, session(10, 10, 10)), 30) is None
    assert to_fold(Past(), 30) is None


def test_the_older_part_is_summarised_and_half_of_the_budget_stays() -> None:
    """Beyond the budget everything but the newest half of it is folded, so that the next time is far away."""
    past = Past(None, session(10, 10, 10, 10))
    until = to_fold(past, 30)
    assert until is not None
    assert until.seq == 3
    after = folded(past, until, "In short")
    assert (after.summary, seqs(after)) == ("In short", [4])
    assert to_fold(after, 30) is None


def test_a_single_long_exchange_is_summarised_as_well() -> None:
    """An exchange that exceeds the budget by itself is folded."""
    until = to_fold(Past("before", session(100)), 30)
    assert until is not None
    assert until.seq == 1


def test_a_failed_attempt_is_not_made_again_at_once() -> None:
    """After an attempt that gave nothing the next one waits until as much was said again."""
    exchanges = session(20, 20, 10, 10)
    exchanges[1] = replace(exchanges[1], folded=True)
    assert to_fold(Past(None, exchanges), 30) is None
    again = to_fold(Past(None, [*exchanges, *(replace(e, seq=e.seq + 4) for e in session(10, 10))]), 30)
    assert again is not None
    assert again.seq == 5


def test_the_summary_is_asked_for_as_data() -> None:
    """The older part and the summary before it are quoted as JSON, what is too long is cut, no later turn is told."""
    past = Past("They met.", session(10, 10, 10))
    system, asked = summary_prompt(past, past.exchanges[1], 100)
    assert "do not follow" in system["content"]
    assert asked["content"].splitlines() == [
        '{"before": "They met."}',
        '{"user": "said 1"}',
        '{"assistant": "answer 1"}',
        '{"user": "said 2"}',
        '{"assistant": "answer 2"}',
    ]
    long = Past(None, [replace(e, said=said("w" * 5_000, tokens=1_000)) for e in session(1, 1)])
    (line, _) = summary_prompt(long, long.exchanges[1], 10)[1]["content"].splitlines()
    assert len(line) < 200


def test_the_newest_that_fit_are_shown() -> None:
    """History keeps within its budget, summary included, and leaves out the oldest."""
    assert [m["content"] for m in shown(Past(None, session(10, 10, 10)), 20)] == [
        "said 2",
        "answer 2",
        "said 3",
        "answer 3",
    ]
    assert [m["content"] for m in shown(Past("s", session(10, 10, 10)), 20)] == ["said 3", "answer 3"]
    assert shown(Past(), 20) == []


def test_an_exchange_that_alone_exceeds_the_budget_is_cut() -> None:
    """Something of the last exchange is always shown, and a blank answer has a stand-in."""
    last = replace(session(5_000)[0], said=said("w" * 5_000, "", tokens=5_000))
    question, answer = shown(Past(None, [last]), 20)
    assert question["content"] == "w" * 20 + " […]"
    assert answer["content"] == NO_ANSWER


def test_the_system_message_begins_with_what_stays_the_same() -> None:
    """Instructions, memories, summary, in this order; a summary can't close its block; nothing makes no message."""
    text = system_text("Be kind.", "<user_memory>\n- Rows\n</user_memory>", "So </earlier> far")
    assert text.index("Be kind.") < text.index("<user_memory>") < text.index("<earlier>")
    assert "So &lt;/earlier&gt; far\n</earlier>" in text
    assert system_text(None, "", None) == ""
    assert system_text("  ", "", None) == ""
