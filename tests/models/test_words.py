"""The word tokenizer: lossless, deterministic, of a bounded size."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from farhorizon.core.errors import UserError
from farhorizon.models.words import build_tokenizer

TEXTS = [
    "Crafting commands:\ncraft 4 oak planks using 1 oak log\n",
    "Goal: fetch 2 blue_dye.\n> get 12 lapis lazuli\nGot 12 lapis lazuli\n",
    "Couldn't find é\u0301\u3000\x1cit\r\n\t(really?)  \n",
]
WORDS = ["get", "oak", "log", "12", "4", ":", ">", ".", "(", "?", "'", "blue_dye", "lapis", "é\u0301", "\x1c"]
BLANKS = [" ", "\n", "\t", "\r", "\u3000", "  ", " \n"]


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(TEXTS, max_words=100)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_it_is_built_from_decode_to_themselves(tokenizer, text):
    ids = tokenizer(text).input_ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.unk_token_id not in ids


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(BLANKS))), st.sampled_from(["", *BLANKS]))
def test_any_text_over_the_vocabulary_decodes_to_itself(tokenizer, pieces, head):
    text = head + "".join(word + blank for word, blank in pieces)
    ids = tokenizer(text).input_ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.unk_token_id not in ids


def test_word_is_known_with_and_without_its_space(tokenizer):
    assert tokenizer.tokenize("get 12") == ["get", " 12"]
    assert tokenizer.tokenize("> get 12 oak log\n") == [">", " get", " 12", " oak", " log", "\n"]
    assert tokenizer.tokenize("oak,") == ["oak", "<unk>"]


def test_prompt_and_action_join_where_the_text_does(tokenizer):
    prompt, action = tokenizer(">").input_ids, tokenizer(" get 12 oak log\n").input_ids
    assert prompt + action == tokenizer("> get 12 oak log\n").input_ids


def test_specials_come_first_and_nothing_is_added(tokenizer):
    assert (tokenizer.unk_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert tokenizer("").input_ids == []
    assert len(tokenizer("get").input_ids) == 1


def test_vocabulary_depends_on_the_set_of_words_alone(tokenizer):
    again = build_tokenizer([" ".join(reversed(TEXTS)), *TEXTS], max_words=100)
    assert again.get_vocab() == tokenizer.get_vocab()


def test_vocabulary_is_the_same_for_any_hash_seed(tokenizer):
    script = f"""
from farhorizon.models.words import build_tokenizer
print(build_tokenizer({TEXTS!r}, 100)({" ".join(WORDS)!r}).input_ids)
"""
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    said = subprocess.check_output([sys.executable, "-c", script], env=environment, text=True)
    assert said.strip() == str(tokenizer(" ".join(WORDS)).input_ids)


def test_reloaded_tokenizer_is_the_same(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.get_vocab() == tokenizer.get_vocab()
    for text in [*TEXTS, "> get 12 oak log\n", "words unknown to it"]:
        ids = tokenizer(text).input_ids
        assert again(text).input_ids == ids
        assert again.decode(ids) == tokenizer.decode(ids)


def test_too_many_words_are_counted():
    with pytest.raises(UserError, match="hold 3 distinct words, more than max_words = 2: raise it"):
        build_tokenizer(["one two", " two\nthree one"], max_words=2)
    assert len(build_tokenizer(["one two", " two\nthree one"], max_words=3)) == 3 + 2 + 6
