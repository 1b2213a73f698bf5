"""The terminal that a command runs in: signals that stop it, an encoding that lacks characters, an output that is closed or full.

Imports nothing that takes time, so that Ctrl+C is heeded from the start.
"""

import atexit
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """What is said when a signal stops the process."""

    sentence = "Stopped."
    is_line_open = False
    """Whether something without a line end may stand in the last line of stderr, such as a progress bar."""


@contextmanager
def stoppable(*, to_the_end: bool) -> Iterator[Stop]:
    """A context in which `SIGNALS` end the process with a sentence and exit code 128 + signal, as shells have it.

    A thread waits for them and ends the process, whatever its other threads are doing. KeyboardInterrupt would not do: the main
    thread raises it only between two lines of Python, while daft 0.7.26 computes 1,024 texts in one call; Daft answers SIGINT with
    an error of its own; and ending the interpreter while Daft's threads run Python aborts the process (SIGABRT). Files are
    replaced when they are complete, so nothing has to be put in order. SIGINT counts where a shell had it ignored, too ("&" in a
    script): Daft would not ignore it.

    Args:
        to_the_end: whether signals are heeded until the process ends, rather than handed back after the context.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield stop
        return
    waiting, woken = socket.socketpair()
    woken.setblocking(False)

    def wait() -> None:
        while number := waiting.recv(1, socket.MSG_PEEK):
            if number[0] not in SIGNALS:
                waiting.recv(1)
            else:
                line = "\n" * (stop.is_line_open or os.isatty(2)) + f"attnviz: {stop.sentence}\n"
                with suppress(OSError, AttributeError):  # not print: an interrupted thread may hold its lock
                    os.write(sys.stderr.fileno(), line.encode())
                os._exit(128 + number[0])

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    fd = signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    handlers = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
    try:
        yield stop
    finally:
        with suppress(BlockingIOError):  # none has come
            if waiting.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)[0] in SIGNALS:
                thread.join()  # what fails because of the signal is not told
        if to_the_end:
            atexit.register(
                lambda: [signal.signal(number, signal.SIG_IGN) for number in SIGNALS]
            )  # all is done
        else:
            for number, handler in handlers.items():
                signal.signal(number, handler or signal.SIG_DFL)
            signal.set_wakeup_fd(fd)
            woken.close()
            thread.join()
            waiting.close()


def prepare_output() -> None:
    r"""Prints a character that the terminal's encoding lacks as its code, such as \u2423, and every line when it is complete.

    So an output that is closed or full is an error where a line is printed, not at the end of the process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not None, as where a shell closed it
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
