# attnviz in a container:
#   docker build -t attnviz . && docker run --rm -p 8501:8501 attnviz
# `make image` and `make image-test` build and try it, with Docker or Podman.
#
# Any base will do that is a Debian with Python 3.11 to 3.14 and its venv module.
ARG BASE_IMAGE=python:3.11-slim-bookworm

# ---- All that is needed to install attnviz; the next stage takes only what is needed to run it ----
FROM ${BASE_IMAGE} AS build

# strip, and a compiler for what has no wheel here: openTSNE on ARM
RUN apt-get update \
 && apt-get install --yes --no-install-recommends binutils $([ "$(uname -m)" = x86_64 ] || echo g++ python3-dev)

# Whoever reads packages from an index of their own gives pip's configuration to the build, and only to the build:
#   docker build --secret id=pip.conf,src=$HOME/.config/pip/pip.conf .
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN python3 -m venv /venv
ENV PATH=/venv/bin:$PATH

# From what changes least to what changes most: torch is by far the largest, attnviz itself the last.
COPY locked/install-torch locked/torch-cpu.txt locked/torch-cuda.txt locked/uv.txt locked/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    locked/install-torch /venv/bin/python
COPY locked/app.txt locked/models.txt locked/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    pip install --require-hashes --no-deps -r locked/app.txt -r locked/models.txt

# What is never used, 700 MB: torch's headers, tests and tools, Arrow's network and cloud storage, all tests, sources in C, extensions
# of notebooks, the names of libraries' internal functions, and compiled Python of which most is never imported.
RUN cd "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
 && rm -rf torch/include torch/test torch/lib/*test*.so pydeck/nbextension plotly/labextension \
           plotly/package_data/widgetbundle.js plotly/package_data/datasets \
           pyarrow/include pyarrow/*arrow*flight* pyarrow/_flight* pyarrow/*arrow_s3* pyarrow/_s3fs* \
 && find torch/bin -type f -not -name torch_shm_manager -delete \
 && find . -depth -type d \( -name tests -o -name __pycache__ \) -exec rm -r {} + \
 && find . -type f \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pyi' -o -name '*.[ch]' -o -name '*.cpp' \) -delete \
 && find . -type f -name '*.so*' -not -path '*.libs/*' -exec strip --strip-unneeded {} +

COPY . .
RUN pip install --no-deps --no-build-isolation --no-index --editable .

# Models to serve, from the Hub, such as MODELS=bert-base-uncased,google-bert/bert-base-cased: a container needs no network for them.
ARG MODELS=
ARG HF_ENDPOINT=
ENV HF_HOME=/models
RUN mkdir -p /models \
 && if [ -z "$HF_ENDPOINT" ]; then unset HF_ENDPOINT; fi \
 && for model in $(echo "$MODELS" | tr , ' '); do attnviz download "$model" || exit 1; done

# What is imported on the way is compiled once, here. The build ends where the numbers are not the model's, or a page fails.
RUN export OMP_NUM_THREADS=1 NUMBA_CACHE_DIR=/tmp/numba \
 && attnviz verify "I was watching the door when it opened." \
 && pip uninstall --quiet --yes uv pip \
 && python -c "import streamlit.web.cli, uvicorn, streamlit.web.server.starlette, umap, openTSNE, app; \
from streamlit.testing.v1 import AppTest; \
assert not AppTest.from_file('attention.py', default_timeout=300).run().exception"

# ---- What runs ----
FROM ${BASE_IMAGE}

ARG VERSION=
ARG REVISION=
ARG MODELS=
LABEL org.opencontainers.image.title="attnviz" \
      org.opencontainers.image.description="See the attention of a BERT for your own sentence, checked against the model on every run" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# /data is the only folder that is written to; a tmpfs there, which takes its mode from this folder, will do. The language model is
# dequantised there when it is first asked for, 540 MB. Models are in /models;
# a volume there takes what is downloaded later.
RUN useradd --no-create-home --home-dir /data --uid 1000 attnviz \
 && install --directory --mode=1777 /data \
 && install --directory --owner=attnviz --group=attnviz /models
COPY --from=build /venv /venv
COPY --from=build --chown=attnviz /models /models
COPY --from=build /app /app
WORKDIR /app
USER 1000:1000

# One thread for each computation: visitors share the cores. The address is what the start-up message names.
ENV PATH=/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/data \
    TMPDIR=/data \
    NUMBA_CACHE_DIR=/data/numba \
    HF_HOME=/models \
    HF_ASSETS_CACHE=/data/assets \
    ATTNVIZ_MODELS=${MODELS} \
    OMP_NUM_THREADS=1 \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_HEADLESS=true \
    STREAMLIT_BROWSER_SERVER_ADDRESS=localhost
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:%s/_stcore/health' % os.environ['STREAMLIT_SERVER_PORT'], timeout=4)"]
CMD ["streamlit", "run", "app.py"]
