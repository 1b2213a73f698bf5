"""Log lines of Streamlit and its server have the same form as all others.

Symptom: Streamlit gives each of its loggers a handler of its own when the logger is first asked for. An error in a page
is written over many lines, in colour if the library rich is installed, and may quote a visitor's text.
Version: 1.67.0; `logger.messageFormat` changes the prefix of such lines, not their form. No upstream issue is known to us.
No longer needed when: `test_gives_each_logger_a_handler_of_its_own` in tests/unit/test_streamlit_fixes.py fails.
"""

import logging

from streamlit import config, logger

_set_up = logger.setup_formatter


def format_logs(line: logging.Formatter) -> None:
    """From now on this formatter makes every log line of this process."""
    config.set_option("logger.enableRich", False)

    def set_up_in_line(created: logging.Logger) -> None:
        _set_up(created)
        _format(created, line)

    vars(logger)["setup_formatter"] = set_up_in_line
    for known in logging.root.manager.loggerDict.values():
        if isinstance(known, logging.Logger):
            _format(known, line)


def _format(owner: logging.Logger, line: logging.Formatter) -> None:
    for handler in owner.handlers:
        handler.setFormatter(line)
