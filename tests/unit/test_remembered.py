"""What is kept is bounded in bytes, and made once for all who ask."""

import threading
from collections import namedtuple
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
import torch

from ui.runtime.memory import n_bytes
from ui.runtime.remembered import NUMBERS, Store


def numbers(n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.uint8)


class TestBytes:
    def test_of_an_array_are_its_buffer_s_once(self):
        whole = numbers(1000)
        assert n_bytes(whole) == 1000
        assert n_bytes(whole[:7]) == 1000  # a part keeps the whole alive
        assert n_bytes((whole, whole[7:])) - n_bytes(()) < 1100

    def test_go_through_records_and_mappings(self):
        @dataclass(frozen=True, slots=True)
        class Record:
            first: np.ndarray
            others: MappingProxyType

        record = Record(numbers(5000), MappingProxyType({"a": (numbers(300),), "b": [numbers(70)]}))
        assert 5370 <= n_bytes(record) < 6500

    def test_of_a_network_are_its_parameters(self):
        assert 4 * (17 * 13 + 13) <= n_bytes(torch.nn.Linear(17, 13)) < 4 * (17 * 13 + 13) + 500

    def test_of_a_tensor_are_its_buffer_s_once(self):
        whole = torch.zeros(5000)
        assert 20_000 <= n_bytes((whole, whole[3:], whole.view(50, 100))) < 20_500

    def test_of_parameters_that_networks_share_count_once(self):
        layer = torch.nn.Linear(17, 13)
        pair = torch.nn.Sequential(layer), torch.nn.Sequential(layer)
        assert n_bytes(pair) < 2 * 4 * 17 * 13

    def test_of_a_trace_are_its_own_beside_what_its_model_keeps(self, door_trace, kept_bytes):
        """Of 11 tokens; the model's maps W_O, which every trace of it shares, take ten times as much."""
        of_model = 6 * (384 * 384 + 384) * 4  # layers of weights and biases in float32
        store = Store(100, NUMBERS._entries.getsizeof)
        store.keep("trace", door_trace)
        assert 0 < store.n_bytes - (kept_bytes(door_trace)) < 20_000
        assert 0 <= n_bytes((door_trace, "trace")) - store.n_bytes - of_model < 20_000

    def test_of_a_named_tuple(self):
        pair = namedtuple("pair", "one two")(numbers(500), "text")
        assert 500 < n_bytes(pair) < 800


class TestStore:
    def test_the_least_recently_used_go_first(self):
        store = Store(0.1)  # a hundred thousand bytes
        for name in "abc":
            store.keep(name, numbers(30_000))
        assert 90_000 <= store.n_bytes < 91_000
        store.found_or_made("a", lambda: pytest.fail("it was kept"))
        store.keep("d", numbers(30_000))
        assert [store.found(name) is not None for name in "abcd"] == [True, False, True, True]
        assert store.n_bytes <= store.most_bytes == 100_000

    def test_what_a_result_was_made_from_counts_too(self):
        store = Store(0.1)
        for name in "abc":
            store.keep((name, "a long text " * 3000), name)
        assert 70_000 < store.n_bytes < 80_000
        assert store.found(("a", "a long text " * 3000)) is None

    def test_what_is_larger_than_the_store_is_given_and_not_kept(self):
        store = Store(0.1)
        store.keep("a", numbers(30_000))
        assert len(store.found_or_made("b", lambda: numbers(100_001))) == 100_001
        assert store.found("b") is None
        assert store.found("a") is not None

    def test_it_is_made_once_for_all_who_ask_at_the_same_time(self):
        store, made, given = Store(1), [], []
        together = threading.Barrier(5)

        def make() -> np.ndarray:
            made.append(threading.get_ident())
            return numbers(10)

        def ask() -> None:
            together.wait(10)
            given.append(store.found_or_made("a", make))

        threads = [threading.Thread(target=ask) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(made) == 1
        assert len(given) == 5
        assert len({id(value) for value in given}) == 1

    def test_what_fails_is_made_again(self):
        store = Store(1)
        with pytest.raises(ZeroDivisionError):
            store.found_or_made("a", lambda: 1 / 0)
        assert store.found_or_made("a", lambda: 7) == 7

    def test_a_function_is_asked_once_for_each_of_its_arguments(self):
        asked = []

        @Store(1).remembers()
        def double(number: int, *, times: int = 2) -> int:
            asked.append((number, times))
            return number * times

        assert [double(3), double(3), double(3, times=5), double(3, times=7), double(4)] == [6, 6, 15, 21, 8]
        assert asked == [(3, 2), (3, 5), (3, 7), (4, 2)]

    def test_functions_of_one_name_in_two_modules_do_not_share(self):
        def named_alike(module: str):
            def number() -> str:
                return module

            number.__module__ = module
            return number

        store = Store(1)
        first, other = (store.remembers()(named_alike(module)) for module in ("one", "other"))
        assert (first(), other()) == ("one", "other")
