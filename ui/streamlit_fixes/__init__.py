"""Work-arounds for Streamlit, one file each: the symptom, the version that has it, and how to see that it is gone."""

TRIED_WITH = "1.67.0"
"""The version that every work-around was last tried with; a test asks for a new trial when another one is installed."""
