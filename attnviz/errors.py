"""The errors of attnviz, one tree.

    AttnvizError
    ├── ArgumentError                (also TypeError)   an argument of another type than the function takes
    ├── EmptyTextError               (also ValueError)  nothing to read
    ├── TextTooLongError             (also ValueError)  more than the model reads
    ├── InvalidTextError             (also ValueError)  lone surrogates
    ├── SelectionError               (also IndexError)  no such layer, head, query, key or kind
    ├── ModelNotAvailableError                          unknown, not on disk, damaged or unsafe
    ├── DownloadError                                   the Hub could not be reached, or the connection was lost
    ├── UnsupportedArchitectureError                    the family cannot run on attnviz's attention
    ├── ModelFailedError                                the model's or its tokenizer's own code failed on a text
    ├── CaptureError                                    a forward pass was not recorded as expected
    ├── ShapeError                   (also ValueError)  arrays that do not fit each other
    ├── VerificationError                               no numbers of the model to compare with
    ├── ProjectionError              (also ValueError)  a map that cannot be drawn as asked
    ├── OutOfMemoryError             (also MemoryError) arrays that do not fit into memory
    ├── CorpusError                  (also ValueError)  texts, or a profile of texts, that cannot be read or written
    └── BundleError                  (also ValueError)  a file that is not a bundle, or a view that is too large for one

Every message says what was asked, what was found and what to do next, in words for the app's users;
the numbers in it are attributes too.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager


class AttnvizError(Exception):
    """Base of every error that attnviz raises on purpose."""


class ArgumentError(AttnvizError, TypeError):
    """An argument is of another type than the function takes; see `attnviz.arguments`."""


class EmptyTextError(AttnvizError, ValueError):
    """The text holds no token: it is empty, blank, or made of characters that the tokenizer drops."""


class TextTooLongError(AttnvizError, ValueError):
    """The text is longer than the model reads (``unit`` "tokens"; "template" where its chat template alone is) or attnviz takes ("characters")."""

    def __init__(self, message: str, *, length: int, limit: int, unit: str) -> None:
        super().__init__(message)
        self.length = length
        self.limit = limit
        self.unit = unit


class InvalidTextError(AttnvizError, ValueError):
    """The text contains a code point that is not a Unicode character, such as a lone surrogate."""


class SelectionError(AttnvizError, IndexError):
    """The trace does not have the layer, head, query, key or kind that was asked for."""


class ModelNotAvailableError(AttnvizError):
    """A model is unknown, not on disk, damaged, or could only be loaded by running its code."""


class DownloadError(AttnvizError):
    """A download did not finish; what has arrived is kept, and the next download resumes from it."""


class UnsupportedArchitectureError(AttnvizError):
    """The model's family does not let its attention be replaced, or adds a term that attnviz does not know."""

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        """Why the family is refused, as in "it caps its scores"; None where the reason is not known."""


class ModelFailedError(AttnvizError):
    """A model cannot read a text: its own code or its tokenizer's raised an error, or its numbers are not finite."""


class CaptureError(AttnvizError):
    """A forward pass did not call attnviz's attention exactly once for each layer."""


class ShapeError(AttnvizError, ValueError):
    """Arrays of one record do not fit each other."""


class VerificationError(AttnvizError):
    """The model's own attention is not available, or has other axes than attnviz's."""


class ProjectionError(AttnvizError, ValueError):
    """The parameters of a projection do not fit the points."""


class OutOfMemoryError(AttnvizError, MemoryError):
    """An array does not fit into the memory that is left."""


class CorpusError(AttnvizError, ValueError):
    """Texts that cannot be read as a corpus, or a folder that holds no profile or no room for one."""


class BundleError(AttnvizError, ValueError):
    """A file cannot be opened as a bundle, or a view is too large for one."""


def lacks_memory(error: BaseException) -> bool:
    """Whether Python, numpy or torch raised this where memory is short.

    Source: torch 2.13.0 raises RuntimeError, on a CPU with "can't allocate memory" and on a GPU with "out of memory".
    """
    message = str(error)
    is_torch_s = isinstance(error, RuntimeError) and (
        "allocate memory" in message or "out of memory" in message
    )
    return isinstance(error, MemoryError) or is_torch_s


@contextmanager
def enough_memory() -> Iterator[None]:
    """A context in which OutOfMemoryError stands for what `lacks_memory` recognises."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        raise OutOfMemoryError(
            "What was asked for does not fit into the memory of this machine. Shorten the text, or select a smaller model."
        ) from error


LONGEST_CAUSE = 300
"""Characters of another library's error that are shown; some print whole tensors."""

_QUOTE = r"(?<=\w)['\"](?=\w)"
_STEP = rf"[^\s/\\'\"](?:(?!\.\w+\s|[.,:;]\s)[^\n/\\'\"]|{_QUOTE})*(?<![\s:])"
"""A folder's name, which may hold spaces, but none behind an extension or a comma: there a sentence goes on."""
_START = r"(?:(?<![\w/.<:])|(?<=:)(?!//)|\bfile://|~)"
_FOLDERS = re.compile(rf"{_START}/+(?=\S)(?:{_STEP}/+(?=[^\s'\"]))*|\b[A-Za-z]:\\(?:{_STEP}\\)*")
"""The folders of an absolute path, of POSIX or Windows; addresses such as https://huggingface.co have none."""


def without_folders(text: str) -> str:
    """The text with only the last part of each absolute path in it, so that an error does not give this machine's folders away."""
    return _FOLDERS.sub("", text)


def cause(error: BaseException, message: str | None = None) -> str:
    """A sentence of the type of another library's error and the first line of its message, as in "KeyError: 'scale'.".

    A line that ends in a colon goes on in the next; a type that is only Exception is left out. Of a path, only its last
    part is kept.

    Args:
        message: what it says, where not all of that is to be shown.
    """
    said_by_library = str(error) if message is None else message
    said_by_library = re.sub(r":\s*\n\s*", ": ", re.sub(r"\x1b\[[0-9;]*m", "", said_by_library).strip())
    line = "".join(filter(str.isprintable, without_folders(said_by_library.split("\n")[0]))).rstrip(" :")
    line = f"{line[:LONGEST_CAUSE]}…" if len(line) > LONGEST_CAUSE else line
    kind = type(error).__name__
    sentence = line if line and kind == "Exception" else f"{kind}: {line}" if line else kind
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


@contextmanager
def failures_of(what: str, advice: str) -> Iterator[None]:
    """A context in which ModelFailedError stands for whatever the code of a model or a tokenizer raises.

    Errors of attnviz's own pass, and a lack of memory is OutOfMemoryError. A panic of tokenizers' Rust code is no
    Exception (pyo3's PanicException). After an error inside a GPU's own code (torch 2.13.0's AcceleratorError) every
    later call to it fails too.

    Args:
        what: what could not be done, such as "BertModel cannot read this text".
        advice: what to do next, a sentence.
    """
    try:
        with enough_memory():
            yield
    except AttnvizError:
        raise
    except BaseException as error:
        kind = type(error).__name__
        if not isinstance(error, Exception) and kind != "PanicException":
            raise
        if kind == "AcceleratorError":
            advice = "The GPU answers nothing more in this process: start attnviz again."
        raise ModelFailedError(f"{what}: {cause(error)} {advice}") from error
