# make demo   set up from nothing and run the samples through the embedded stack: no key, no account
# make test   set up and pass the tests

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.set-up

# make soak   the long checks of the measurement itself, about half an hour
# make bench  plain pipecat against voicebench's stack on this machine, about six minutes: bench.json
# make bench-full  all samples, three runs, one setting changed at a time, over two hours: bench-full.json and .md;
#                  stopped, it goes on behind the last turn (make clean-bench begins anew)
# make bench-words word errors of the stack's Whisper against plain pipecat's on twenty cuts of each sample:
#                  bench-words.json, about four minutes; the last step of bench-full

.PHONY: demo test soak bench bench-full bench-words clean-bench lint types check-layers clean

$(SETUP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "voicebench needs Python 3.11, 3.12 or 3.13; none was found." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[local,anthropic,av,dev]'
	@touch $@

demo: $(SETUP)
	$(BIN)/voicebench models fetch
	$(BIN)/voicebench batch

test: $(SETUP) lint types check-layers
	sh tests/system-packages.sh
	$(BIN)/voicebench models fetch
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --ignore=tests/truth --ignore=tests/live
	$(BIN)/python -m pytest tests/live
	$(BIN)/python -m pytest tests/truth  # times are asserted here and in tests/live: nothing runs beside them

soak: $(SETUP)
	$(BIN)/python -m pytest -o addopts= -ra --strict-markers -s tests/soak

bench: $(SETUP)
	$(BIN)/voicebench models fetch
	$(BIN)/python -m tests.benchmarks.bench_stack --samples ten --repeats 3 --least 24

bench-full: $(SETUP)
	$(BIN)/voicebench models fetch
	$(BIN)/python -m tests.benchmarks.bench_stack --arms plain,voicebench,off --samples all --repeats 4 \
		--repeats-off 1 --least 60 --runs 3 --out bench-full.json --resume
	$(BIN)/python -m tests.benchmarks.bench_words

bench-words: $(SETUP)
	$(BIN)/voicebench models fetch
	$(BIN)/python -m tests.benchmarks.bench_words

clean-bench:
	rm -f bench.json bench.md bench-words.json bench-run-*.json* bench-full.json bench-full.md bench-full-run-*.json*

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/mypy

check-layers: $(SETUP)
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist
