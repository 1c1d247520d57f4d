# The two commands: `make run` starts nodeproof on this machine, `make test` proves it.
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test test-unit test-build test-e2e test-race test-container-e2e lint docs lock clean

run: $(VENV)/.installed
	$(BIN)/nodeproof up

test: $(VENV)/.installed-dev
	$(BIN)/python tools/check.py

# Parts of it, for whoever works on one; what only `make test` does besides: coverage, budgets, and a second look at what failed.
PYTEST := $(BIN)/python -m pytest

test-unit: $(VENV)/.installed-dev
	$(PYTEST) tests/unit tests/golden

# The distribution, what it ships, and workloads out of sources.
test-build: $(VENV)/.installed-dev
	$(PYTEST) tests/process/test_wheel.py tests/process/test_make_venv.py tests/unit/operate/test_audit.py \
		tests/unit/operate/test_assets.py
	$(BIN)/nodeproof audit --source .

# Real processes, real servers, a real browser, and every command of the documents.
test-e2e: $(VENV)/.installed-dev
	$(PYTEST) tests/process tests/browser tests/docs --ignore-glob='*podman*'

# What threads and processes share, with the interpreter changing threads two hundred times as often, each test five times.
test-race: $(VENV)/.installed-dev
	for round in 1 2 3 4 5; do NODEPROOF_TEST_SWITCH_S=0.000025 $(PYTEST) tests/unit/host tests/unit/runs tests/unit/scheduler \
		tests/unit/sinks tests/unit/faults tests/unit/operate/test_state_version.py || exit 1; done

# On a machine with a container engine; what it lacks is named at the end.
test-container-e2e: $(VENV)/.installed-dev
	$(PYTEST) -k 'podman or container or deploy' tests/process tests/unit/operate

lint: $(VENV)/.installed-dev
	$(BIN)/python tools/check.py --lint

docs: $(VENV)/.installed-dev
	$(BIN)/python tools/generate_docs.py

# Names, versions and hashes of the development tools; no address of any registry.
lock:
	uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header --no-annotate \
		--no-emit-find-links --no-emit-index-url -o requirements/dev.lock

$(VENV)/.installed: pyproject.toml tools/make_venv.sh
	tools/make_venv.sh $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml requirements/dev.lock tools/make_venv.sh tools/system_packages.sh tools/node/package-lock.json
	tools/make_venv.sh $(VENV)
	tools/system_packages.sh
	tools/node_packages.sh
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	tools/torch_for_tests.sh $(VENV)
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
