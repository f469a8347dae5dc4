"""A word-level tokenizer that loses nothing: any text over its vocabulary decodes to itself.

A text is cut into words, numbers and punctuation marks, each with the space before it if there is one, and
single white-space characters. Every word is in the vocabulary with and without its space, so that a word can
follow anything: the model writes " get" after ">", an environment may begin a line with "get".
"""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from farhorizon.core.errors import UserError

PATTERN = r" ?\w+| ?[^\w\s]|\s"
UNKNOWN, PAD, END = "<unk>", "<pad>", "<eos>"
SPECIALS = (UNKNOWN, PAD, END)
"""Ids 0, 1 and 2. A text that spells one out encodes to it."""


def build_tokenizer(texts: Iterable[str], max_words: int) -> PreTrainedTokenizerFast:
    """A tokenizer over the words of some texts.

    The vocabulary depends on the set of words alone: specials, newline, space, then the words in order of
    their characters, each without and with a leading space. A word outside it becomes `<unk>`.

    Args:
        texts: texts that contain every word to be known.
        max_words: most distinct words, spaces aside.

    Raises:
        UserError: the texts hold more words.
    """
    cut = pre_tokenizers.Split(Regex(PATTERN), behavior="isolated")
    pieces = {piece for text in set(texts) for piece, _ in cut.pre_tokenize_str(text)}
    words = {piece.removeprefix(" ") for piece in pieces} - {"", "\n"}
    if len(words) > max_words:
        raise UserError(
            f"the texts hold {len(words)} distinct words, more than max_words = {max_words}: "
            "raise it, or choose fewer environments"
        )
    entries = [*SPECIALS, "\n", " "]
    for word in sorted(words):
        entries.append(word)
        if len(cut.pre_tokenize_str(f" {word}")) == 1:  # white space takes no space before it
            entries.append(f" {word}")
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    backend.pre_tokenizer = cut
    backend.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token=UNKNOWN,
        pad_token=PAD,
        eos_token=END,
        clean_up_tokenization_spaces=False,
    )
