"""Files that are no bundle, that were changed or that were made to do harm: each is refused in a sentence."""

import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest

from attnviz.bundle import reading as bundle_reading
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import MATRIX, NUMBERS, PAGE, PROVENANCE
from attnviz.errors import BundleError
from tests.bundles import files_of, packed_again, with_arrays, with_document
from tests.tiers import first_gates

pytestmark = pytest.mark.slow


WEIGHTS_AT = 7  # of the checks of a BERT: after tokens, labels, queries, keys, values, scale and mask


def with_npy(packed, name, content):
    """The bundle with other bytes as one of its arrays."""
    files = files_of(packed)
    with zipfile.ZipFile(io.BytesIO(files[NUMBERS])) as numbers:
        parts = {name: numbers.read(name) for name in numbers.namelist()}
    parts[name] = content
    return packed_again(files | {NUMBERS: packed_again(parts, zipfile.ZIP_STORED)})


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


class Touch:
    """Unpickled, it leaves a folder behind."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class TestHostileFiles:
    @pytest.fixture(autouse=True)
    def as_users_run_it(self, types_unchecked):
        """Shapes and types are refused by the reader, not by the tests' checks."""

    def refused(self, data, words=""):
        with pytest.raises(BundleError) as caught:
            read_bundle(data)
        message = str(caught.value)
        assert words in message
        assert "\n" not in message
        assert len(message) < 300

    @pytest.mark.parametrize("data", [b"", b"PK", b"<html></html>", b"PK\x05\x06" + bytes(18), bytes(1000)])
    def test_that_are_no_bundle(self, data):
        self.refused(data, "not a bundle")

    def test_too_large(self):
        with pytest.raises(BundleError, match="This file is 3 MB; a bundle is at most 2 MB here"):
            read_bundle(bytes(2_500_001), most_bytes=2_500_000)

    def test_of_another_version(self, packed):
        for version in (1, 6):
            self.refused(
                with_document(packed, lambda document, version=version: document.update(version=version)),
                f"version {version} of the format; this attnviz reads versions 2, 3, 4 and 5",
            )

    @pytest.mark.parametrize(
        "name", ["../evil.py", "/etc/passwd", "evil.py", "numbers.npz/../x", "PROVENANCE.JSON"]
    )
    def test_with_other_names(self, name, packed, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        files = files_of(packed)
        self.refused(packed_again(files | {name: b"x"}), "its files are not those of a bundle")
        del files[MATRIX]
        self.refused(packed_again(files | {name: b"x"}), "its files are not those of a bundle")
        assert list(tmp_path.iterdir()) == []

    def test_with_a_file_twice(self, packed):
        archive = io.BytesIO()
        files = files_of(packed)
        with zipfile.ZipFile(archive, "w") as target:
            for name in (*files, PROVENANCE):
                with pytest.warns(UserWarning) if name in target.namelist() else _nothing():
                    target.writestr(name, files[name])
        self.refused(archive.getvalue(), "a file twice")

    def test_without_one_of_the_files(self, packed):
        files = files_of(packed)
        for name in files:
            self.refused(
                packed_again({file: files[file] for file in files if file != name}),
                "its files are not those of a bundle",
            )

    def test_with_more_entries_than_are_worth_reading(self):
        self.refused(
            packed_again({str(number): b"" for number in range(1000)}), "its files are not those of a bundle"
        )

    def test_whose_directory_is_that_of_zip64(self, packed):
        """It may be longer than its end says: APPNOTE.TXT 6.3.10, sections 4.3.14 and 4.3.15."""
        n_entry, n_byte, first = struct.unpack("<HII", packed[-12:-2])
        record = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, n_entry, n_entry, n_byte, first)
        locator = b"PK\x06\x07" + struct.pack("<IQI", 0, len(packed) - 22, 1)
        data = packed[:-22] + record + locator + packed[-22:]
        assert zipfile.ZipFile(io.BytesIO(data)).namelist() == zipfile.ZipFile(io.BytesIO(packed)).namelist()
        self.refused(data, "its files are not those of a bundle")

    def test_that_unpack_to_too_much(self, packed):
        files = files_of(packed)
        self.refused(
            packed_again(files | {PROVENANCE: bytes(bundle_reading._LARGEST_ENTRIES[PROVENANCE] + 1)}),
            "too large",
        )
        self.refused(
            packed_again(files | {PAGE: bytes(bundle_reading._LARGEST_ENTRIES[PAGE] + 1)}), "too large"
        )

    def test_whose_directory_says_less_than_is_packed(self, packed):
        """A bomb that lies: 10 MB behind a size of 10 bytes."""
        data = packed_again(files_of(packed) | {PROVENANCE: bytes(10_000_000)})
        directory = data.rindex(b"PK\x01\x02", 0, data.rindex(PROVENANCE.encode()))
        lied = data[: directory + 24] + (10).to_bytes(4, "little") + data[directory + 28 :]
        self.refused(lied)

    @pytest.mark.parametrize("method", first_gates(zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    def test_whose_numbers_are_packed(self, method, packed):
        self.refused(packed_again(files_of(packed), method), "uses an unsupported compression method")

    def test_whose_arrays_are_packed(self, packed):
        """np.savez_compressed: 1,000 times smaller for zeros."""
        self.refused(
            with_arrays(packed, lambda arrays: None, save=np.savez_compressed),
            "uses an unsupported compression method",
        )

    def test_that_are_encrypted(self, packed):
        data = bytearray(packed)
        for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
            at = -1
            while (at := data.find(mark, at + 1)) >= 0:
                data[at + offset] |= 1
        self.refused(bytes(data), "it is encrypted")

    def test_with_a_pickle_are_not_run(self, packed, tmp_path):
        touched = tmp_path / "touched"
        hostile = npy(np.array([Touch(touched)], dtype=object))
        self.refused(with_npy(packed, "weights.npy", hostile), "is not an array of float32")
        self.refused(
            with_npy(packed, "weights.npy", pickle.dumps(Touch(touched))), "is not an array of float32"
        )
        self.refused(packed_again(files_of(packed) | {NUMBERS: hostile}), "not a complete zip file")
        assert not touched.exists()
        np.load(io.BytesIO(hostile), allow_pickle=True)  # it would have been
        assert touched.exists()

    @pytest.mark.parametrize(
        "array",
        [
            np.zeros((11, 11)),
            np.zeros((11, 11), dtype=">f4"),
            np.zeros((11, 11), dtype=np.int32),
            np.zeros((11, 11), dtype="U9"),
            np.zeros((11, 11), dtype=[("a", "<f4")]),
            np.asfortranarray(np.ones((11, 11), dtype=np.float32)),
            np.zeros(121, dtype=np.float32),
            np.zeros((0, 11), dtype=np.float32),
        ],
    )
    def test_with_other_types(self, array, packed):
        self.refused(with_npy(packed, "weights.npy", npy(array)))

    @pytest.mark.parametrize(
        "shape", ["(99999999, 99999999)", "(10000000000, 1)", "(-1, 11)", "(11, 12)", "(11, 10)"]
    )
    def test_with_sizes_that_they_do_not_have(self, shape, packed):
        array = npy(np.zeros((11, 11), dtype=np.float32))
        assert array.count(b"(11, 11)") == 1
        changed = array.replace(b"(11, 11)", shape.encode())
        changed = (
            changed.replace(b" " * (len(changed) - len(array)) + b"\n", b"\n")
            if len(changed) > len(array)
            else changed
        )
        self.refused(with_npy(packed, "weights.npy", changed))

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e13])
    def test_with_numbers_that_are_none(self, bad, packed):
        def spoil(arrays):
            arrays["encoder.query"][2, 3, 5, 7] = bad

        self.refused(with_arrays(packed, spoil), "not finite")

    @pytest.mark.parametrize(
        "change",
        [
            lambda arrays: arrays.pop("encoder.key"),
            lambda arrays: arrays.update({"decoder.key": arrays["encoder.key"]}),
            lambda arrays: arrays.update({"encoder.key": arrays["encoder.key"][:, :, :7]}),
            lambda arrays: arrays.update({"encoder.key": arrays["encoder.key"][..., :7]}),
            lambda arrays: arrays.update({"encoder.key": arrays["encoder.key"][:, :5]}),
            lambda arrays: arrays.update({"encoder.key": arrays["encoder.key"][:5]}),
            lambda arrays: arrays.update({"encoder.value": arrays["encoder.value"][:5]}),
            lambda arrays: arrays.update({"encoder.query": arrays["encoder.query"][:, :, :7]}),
            lambda arrays: arrays.update({"encoder.query": arrays["encoder.query"][0]}),
            lambda arrays: arrays.update({"encoder.query": arrays["encoder.query"] > 0}),
            lambda arrays: arrays.update(
                {"encoder.value_products": arrays["encoder.value_products"][:, :, :7]}
            ),
            lambda arrays: arrays.update({"encoder.bias": np.zeros((1, 1, 7, 7), dtype=np.float32)}),
            lambda arrays: arrays.update({"last_hidden_state": arrays["last_hidden_state"][:7]}),
            lambda arrays: arrays.update({"weights": arrays["weights"].T.copy()}),
            lambda arrays: arrays.update({"weights": arrays["weights"][:7, :7]}),
            lambda arrays: arrays.update({"weights": np.ones((11, 11), dtype=np.bool_)}),
        ],
    )
    def test_with_arrays_that_do_not_fit_each_other(self, change, packed):
        self.refused(with_arrays(packed, change))

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("tokens", "labels"), ["a"]),
            (("tokens", "labels"), [1] * 11),
            (("tokens", "labels"), ["a" * 1001] * 11),
            (("tokens", "labels"), ["\ud800"] * 11),
            (("tokens", "ids"), []),
            (("tokens", "ids"), [2**64] * 11),
            (("tokens", "ids"), [True] * 11),
            (("tokens", "segment"), [7] * 11),
            (("tokens", "is_special"), [0] * 11),
            (("tokens", "word"), [-2] * 11),
            (("tokens", "text"), "a" * 100_001),
            (("tokens", "text"), None),
            (("tokens", "masked"), {"11": "a"}),
            (("tokens", "unknown"), [11]),
            (("tokens", "in_text"), [11]),
            (("tokens", "in_text"), [1]),  # which is not special
            (("tokens", "masked"), {"a": "a"}),
            (("tokens", "masked"), ["a"]),
            (("target_tokens",), {}),
            (("view", "layer"), 6),
            (("view", "layer"), -1),
            (("view", "layer"), "3"),
            (("view", "layer"), 3.0),
            (("view", "head"), 12),
            (("view", "head"), 2),  # the weights are those of head 1
            (("view", "kind"), "cross"),
            (("view", "kind"), ["encoder"]),
            (("view", "queries"), []),
            (("view", "queries"), [[0, 12]]),
            (("view", "queries"), [[3, 3]]),
            (("view", "queries"), [[4, 5], [0, 1]]),
            (("view", "queries"), [[0, 1, 2]]),
            (("view", "queries"), [["a", 1]]),
            (("view", "query"), 11),
            (("view", "key"), None),
            (("view", "show"), "everything"),
            (("view", "colour"), "red"),
            (("view", "theme"), "</style>"),
            (("view", "renormalised"), 1),
            (("view", "settings"), {"seed": 3}),
            (("view", "settings"), {str(number): "" for number in range(65)}),
            (("model", "name"), "a" * 1001),
            (("model", "versions"), None),
            (("model", "weights_sha256"), {"model.safetensors": "aa"}),
            (("attention",), {}),
            (("attention", "encoder", "scale"), [1.0]),
            (("attention", "encoder", "scale"), [0.0, 0.0, 0.0, 0.0, 0.0, -1.0]),
            (("attention", "encoder", "scale"), [1e300] * 6),
            (("attention", "encoder", "scale"), [True] * 6),
            (("attention", "encoder", "allowed"), [0] * 6),
            (("verification", "passed"), False),
            (("verification", "checks"), []),
            (("verification", "checks"), [{}] * 10_000),
            (("verification", "checks", 0), "tokens"),
            (("verification", "checks", 0, "name"), ":green[Checked]"),
            (("verification", "checks", 0, "name"), "labels"),  # twice
            (("verification", "checks", WEIGHTS_AT, "name"), "score bias"),  # none of the weights
            (("verification", "checks", 0, "unit"), "**matches**"),
            (("verification", "checks", 0, "reason"), "a" * 1001),
            (("verification", "checks", 0, "reason"), None),
            (("verification", "checks", 0, "differences"), {}),
            (("verification", "checks", 0, "differences"), {"cross": [[0.0]]}),
            (("verification", "checks", 0, "differences"), {"encoder": [[0.0]], "cross": [[0.0]]}),
            (("verification", "checks", 0, "differences", "encoder"), []),
            (("verification", "checks", 0, "differences", "encoder"), [[]]),
            (("verification", "checks", 0, "differences", "encoder"), 7),
            (("verification", "checks", 0, "differences", "encoder"), [[0.0], [0.0]]),
            (("verification", "checks", 0, "differences", "encoder"), [[0.0, 0.0]]),
            (("verification", "checks", 0, "differences", "encoder"), [[-1.0]]),
            (("verification", "checks", 0, "differences", "encoder"), [[1e39]]),
            (("verification", "checks", 0, "differences", "encoder"), [["0"]]),
            (("verification", "checks", 0, "differences", "encoder"), [[0.0]] * 6),  # tolerances have one row
            (("verification", "checks", 0, "tolerances", "encoder"), [[None]]),
            (("verification", "checks", 0, "tolerances", "encoder"), [[-1.0]]),
            (("verification", "checks", 0, "tolerances", "encoder"), [[1e39]]),
            (("verification", "checks", WEIGHTS_AT, "differences", "encoder"), [[0.0]]),
            (("verification", "checks", WEIGHTS_AT, "tolerances", "encoder"), [[0.0]]),
            (("verification", "not_compared"), []),
            (("verification", "not_compared"), {"tokens": "They were."}),
            (("verification", "not_compared"), {"<b>anything</b>": ""}),
            (("verification", "not_compared"), {"score bias": "a" * 1001}),
            (("verification",), "passed"),
        ],
    )
    def test_with_a_provenance_that_does_not_fit(self, path, value, packed):
        def change(document):
            for name in path[:-1]:
                document = document[name]

            document[path[-1]] = value

        self.refused(with_document(packed, change))

    def test_with_a_failed_check_whose_tolerance_is_no_number(self, packed):
        def change(document):
            document["verification"]["passed"] = False
            document["verification"]["checks"][0]["tolerances"]["encoder"] = [[None]]

        self.refused(with_document(packed, change), "a tolerance in it is not a number")

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"[]",
            b"null",
            b"\xff",
            b"[" * 100_000,
            b'{"format": "attnviz bundle", "version": 2}',
            b'{"format": "attnviz bundle", "version": ' + b"9" * 5000 + b"}",
            b'{"format": "attnviz bundle", "version": 2, "model": NaN}',
        ],
    )
    def test_with_another_json(self, content, packed):
        self.refused(packed_again(files_of(packed) | {PROVENANCE: content}))

    def test_the_page_and_csv_are_not_believed(self, packed):
        changed = files_of(packed) | {PAGE: b"<script>alert(1)</script>", MATRIX: b"=1+1"}
        assert (
            read_bundle(packed_again(changed)).pattern.weights == read_bundle(packed).pattern.weights
        ).all()


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None
