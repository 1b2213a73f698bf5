"""What the screens share: the only package, beside app.py and pages/, that knows Streamlit."""
