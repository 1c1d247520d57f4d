# The two commands: `make run` starts nodeproof on this machine, `make test` proves it.
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test lint docs lock clean

run: $(VENV)/.installed
	$(BIN)/nodeproof up

test: $(VENV)/.installed-dev
	$(BIN)/python tools/check.py

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
