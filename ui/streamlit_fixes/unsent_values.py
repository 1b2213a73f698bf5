"""A widget's value reaches the browser although the page was drawn anew before the browser made the widget.

Symptom: a value is sent to the browser with the run that sets it. Where a second run begins before, Streamlit drops the
message; and what is in a popover is made by the browser when that is opened, from the newest message about it. The browser
then shows, and sends with the next click, the first of the widget's options or its lowest number. So a value is set in the
first runs of a page, and it also stands in every message as the widget's default (`ui.choice.widgets`), about which
Streamlit would warn (``disableWidgetStateDuplicationWarning`` in .streamlit/config.toml).
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: with ``FILLINGS = 1`` and without defaults `tests/browser/test_closed_popovers.py` passes, and two quick
clicks on a menu entry and on a head, on a page whose method is not the first option, leave the method as it was.
"""

FILLINGS = 2
"""Runs that set the value of a widget on a page that was opened."""
