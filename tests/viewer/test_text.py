"""Trajectories as text."""

import pytest
from made_up import FAILED, SOLVED, episode

from farhorizon.core.record import Status, StopReason
from farhorizon.viewer.text import as_text, ending, printable, shortened


@pytest.mark.parametrize(
    ("trajectory", "text"),
    [
        (episode(SOLVED), "solved in 1 turn"),
        (episode(FAILED, False), "not solved: the 2 turns were used up"),
        (episode(SOLVED, False), "not solved: the one turn was used up"),
        (
            episode(FAILED, False, stop_reason=StopReason.TERMINATED, status=Status.OK),
            "not solved: the environment ended the episode",
        ),
        (episode((), None, stop_reason=StopReason.CONTEXT_OVERFLOW), "success not declared: the context was full"),
    ],
)
def test_ending_says_whether_and_why(trajectory, text):
    assert ending(trajectory) == text


def test_what_would_steer_a_terminal_or_break_a_file_is_escaped():
    text = printable("é 木 👍\tx\r\n\x1b[31mred\ud800\u2028end")
    assert text == "é 木 👍   x\n\\x1b[31mred\\ud800\\u2028end"
    text.encode()


def test_a_trajectory_with_odd_characters_can_be_written():
    as_text(episode((("\x1b]0;title\x07", "\ud800"),), task="a\ud800")).encode()


def test_shortening_says_how_much_is_left_out():
    assert shortened("abc\nd", lines=2, characters=9) == "abc\nd"
    assert shortened("a\nb\nc", lines=2, characters=9) == "a\nb … (2 more characters)"
    assert shortened("x" * 2000, lines=2, characters=10) == "x" * 10 + " … (1,990 more characters)"
