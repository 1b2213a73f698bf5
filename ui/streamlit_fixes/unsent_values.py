"""A widget's value reaches the browser even if the page was redrawn before the browser created the widget.

Symptom: a value is sent to the browser with the run that sets it. If a second run begins before, Streamlit drops the
message; and the browser creates the widgets of a popover when it is opened, from the newest message about it. The browser
then shows, and sends with the next click, the widget's first option or its lowest number. So a value is set in the first
runs of a page, and every message also carries it as the widget's default (`ui.choice.widgets`), about which Streamlit
would warn (``disableWidgetStateDuplicationWarning`` in .streamlit/config.toml).
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: with ``FILLINGS = 1`` and without defaults `tests/browser/test_closed_popovers.py` passes, and two quick
clicks on a menu entry and on a head, on a page whose method is not the first option, leave the method as it was.
"""

FILLINGS = 2
"""Runs of a newly opened page that set a widget's value."""
