"""Tables of prompts: what is read, and what is refused line by line."""

import pytest

import attnviz
from attnviz.effects.prompts import checked_prompts, outcome_of_pair, prepared, read_prompts
from attnviz.errors import EmptyTextError, InvalidTextError
from tests import tiny
from tests.chatting import chat_tokenizer

ROW = '"When Mary and John met, John","When Mary and John met, Mary", Mary, John'


def test_a_table_with_or_without_names():
    """Spaces of answers stay, for " Mary" is another token than "Mary"; those around prompts go."""
    plain = read_prompts(ROW)
    named = read_prompts(f"clean,corrupted,answer,wrong_answer\n{ROW}\n\n")
    mixed = read_prompts(
        'wrong_answer,answer,Clean ,corrupted\n John, Mary," When Mary and John met, John","When Mary and John met, Mary"'
    )
    pasted = read_prompts("When Mary and John met, John\tWhen Mary and John met, Mary\t Mary\t John")
    for prompts in (plain, named, mixed, pasted):
        [pair] = prompts.pairs
        assert (pair.clean, pair.corrupted) == (
            "When Mary and John met, John",
            "When Mary and John met, Mary",
        )
        assert (pair.answer, pair.wrong_answer) == (" Mary", " John")
        assert prompts.refused == ()
    assert (plain.lines, named.lines) == ((1,), (2,))
    assert read_prompts(plain.csv().decode()).pairs == plain.pairs  # with its byte order mark


def test_bad_lines_are_refused_one_by_one():
    prompts = read_prompts(f"{ROW}\na,b,c\na,,c, \n{ROW}\n")
    assert prompts.lines == (1, 4)
    assert prompts.refused == (
        "Line 2 has 3 columns; a pair has 4: clean, corrupted, answer, wrong_answer.",
        "Line 3 has no corrupted and no wrong_answer.",
    )


def test_too_many_are_left_out():
    prompts = read_prompts("\n".join([ROW] * 201))
    assert len(prompts.pairs) == 200
    assert prompts.refused == ("Line 201 is left out; a set has at most 200 pairs.",)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", EmptyTextError, "no row"),
        ("clean,corrupted,answer,wrong_answer\n", EmptyTextError, "no row"),
        ("clean,answer\na,b", InvalidTextError, "corrupted and wrong_answer is missing"),
        ('"a,b,c,d', InvalidTextError, "cannot be read as CSV"),
    ],
)
def test_tables_that_are_none(text, error, message):
    with pytest.raises(error, match=message):
        read_prompts(text)


@pytest.fixture
def gpt2(headed):
    return headed("gpt2")[0]


def test_pairs_that_experiments_on_a_model_cannot_be_made_on(gpt2):
    """Each with its line: another number of tokens, an answer of two tokens, answers that are the same."""
    table = (
        "the cat sat,the dog sat,a,b\nthe cat sat,the cats sat,a,b\nthe cat,the dog,ab,c\nthe cat,the dog,a,a"
    )
    prompts = checked_prompts(gpt2, read_prompts(table))
    assert prompts.lines == (1,)
    assert [refusal.partition(":")[0] for refusal in prompts.refused] == ["Line 2", "Line 3", "Line 4"]
    for reason, refusal in zip(
        ("tokens, and differ in", "2 tokens", "are the same"), prompts.refused, strict=True
    ):
        assert reason in refusal
    n_clean, n_corrupted = (len(gpt2.tokenize(text)) for text in ("the cat sat", "the cats sat"))
    assert f"the texts have {n_clean} and {n_corrupted} tokens" in prompts.refused[0]


def test_the_answer_is_read_at_the_mask_or_at_the_end(gpt2, headed):
    bert, _ = headed("bert")
    [pair] = read_prompts("the [MASK] sat on,the [MASK] ran on,cat,door").pairs
    trace = bert.trace(pair.clean)
    assert outcome_of_pair(bert, trace, pair).position == trace.tokens.labels.index("[MASK]") == 2
    trace = gpt2.trace("the cat sat")
    assert outcome_of_pair(gpt2, trace, pair).position == len(trace.tokens) - 1


def test_both_prompts_are_read_in_the_template(tmp_path):
    tiny.save_with_head("llama", tmp_path)
    chat_tokenizer().save_pretrained(tmp_path)
    model = attnviz.load_model(str(tmp_path))
    prompts = checked_prompts(model, read_prompts("ab,ac,b,c\n", "chat"))
    assert prompts.refused == ()
    clean, corrupted, measure = prepared(model, prompts.pairs[0])
    texts = "".join(clean.tokens.labels), "".join(corrupted.tokens.labels)
    assert [text.count("assistant") for text in texts] == [1, 1]
    assert measure.outcome.position == len(clean.tokens) - 1
