"""Streamlit's and its server's own lines in the log have the form of all others.

Symptom: Streamlit gives each of its loggers a handler of its own when the logger is first asked for, and an error in a page is
written over many lines, in colours where the library rich is there, with words that may be a visitor's.
Version: 1.67.0; `logger.messageFormat` changes what stands before such lines, not what they are. No upstream issue is known to us.
No longer needed when: Streamlit logs through the handlers of the standard library's root logger.
"""

import logging

from streamlit import config, logger


def format_logs(line: logging.Formatter) -> None:
    """From now on every line that any logger of this process writes is made by this formatter."""
    config.set_option("logger.enableRich", False)
    set_up = logger.setup_formatter

    def set_up_in_line(one: logging.Logger) -> None:
        set_up(one)
        _format(one, line)

    vars(logger)["setup_formatter"] = set_up_in_line
    for one in logging.root.manager.loggerDict.values():
        if isinstance(one, logging.Logger):
            _format(one, line)


def _format(one: logging.Logger, line: logging.Formatter) -> None:
    for handler in one.handlers:
        handler.setFormatter(line)
