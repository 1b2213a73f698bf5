"""A widget's value reaches the browser although the page was drawn anew before it was sent.

Symptom: a value is sent to the browser with the run that sets it. Where a second run begins before, Streamlit drops the
message; the browser then shows, and sends with the next click, the first of the widget's options.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: with ``FILLINGS = 1`` two quick clicks on a menu entry and on a head in a browser, on a page whose
method is not the first option, leave the method as it was.
"""

FILLINGS = 2
"""Runs that set the value of a widget on a page that was opened."""
