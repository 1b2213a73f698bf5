# attnviz in a container: docker build -t attnviz . && docker run --rm -p 8501:8501 attnviz
#
# Any base with Python 3.11 to 3.13, its venv module and Debian's useradd will do.
ARG BASE_IMAGE=python:3.11-slim-bookworm
FROM ${BASE_IMAGE}

# Where the pinned torch comes with CUDA packages, `--build-arg TORCH_INDEX=...` names the index of PyTorch's own
# CPU wheels. Only torch is looked up there; 2.13.0+cpu is preferred to 2.13.0.
ARG TORCH_INDEX=

# Whoever reads packages from an index of their own gives pip's configuration to the build, and only to the build:
#   docker build --secret id=pip.conf,src=$HOME/.config/pip/pip.conf .

RUN useradd --create-home --uid 1000 attnviz \
 && install --directory --owner=attnviz --group=attnviz /home/attnviz/.cache /home/attnviz/.cache/huggingface \
 && python3 -m venv /venv
ENV PATH=/venv/bin:$PATH \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1

# From what changes least to what changes most. The first is by far the largest, the last is attnviz itself.
WORKDIR /app
COPY requirements.txt .
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    pip install --no-deps ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$(grep -o '^torch==[^ ]*' requirements.txt)" \
 && torch=$(python -c 'from importlib.util import find_spec; print(*find_spec("torch").submodule_search_locations)') \
 && rm -r "$torch/include" "$torch/test"  # 145 MB for building and testing torch
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    pip install -r requirements.txt
COPY . .
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    pip install --no-deps --editable .

USER attnviz

# Models that are downloaded are kept here. The embedded one is in the image, and needs no network.
ENV HF_HOME=/home/attnviz/.cache/huggingface
VOLUME /home/attnviz/.cache/huggingface

# The address is what the start-up message names; without it Streamlit would ask the internet for its own.
ENV STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_HEADLESS=true \
    STREAMLIT_SERVER_FILE_WATCHER_TYPE=none \
    STREAMLIT_BROWSER_SERVER_ADDRESS=localhost \
    STREAMLIT_BROWSER_GATHER_USAGE_STATS=false
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:%s/_stcore/health' % os.environ['STREAMLIT_SERVER_PORT'], timeout=4)"]
CMD ["streamlit", "run", "app.py"]
