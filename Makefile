# make demo: see it work. The rest is for people who change it; CONTRIBUTING.md explains.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2
# Nothing that the tests start outlives them.
PYTEST := $(BIN)/python tests/contained.py $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test smoke nightly stress test-random test-long test-lowest test-frameworks test-mpi test-airflow test-hdfs test-survival check format bench bench-short bench-fs bench-fs-short update setup setup-demo setup-wheel setup-lowest setup-postgres setup-slurm setup-peers setup-airflow clean

help:
	@echo 'make demo         three teams share eight simulated GPUs; then a bucket is a directory that survives kill -9'
	@echo 'make test         the whole test suite'
	@echo 'make smoke        a minute with the product as a new user meets it'
	@echo 'make nightly      all that takes longer, with a table at the end; each part is a target of its own:'
	@echo 'make test-random  the whole test suite with other examples of hypothesis (SEED=... for the same again)'
	@echo 'make test-long    a million random histories of the scheduler, some hours (HISTORIES=100000: some minutes)'
	@echo 'make test-lowest  the whole test suite with the oldest dependencies allowed'
	@echo 'make test-frameworks  real PyTorch, Paddle, MPI, Ray, Spark jobs; installs them first, gigabytes'
	@echo 'make test-mpi     real MPI jobs only'
	@echo 'make test-airflow exported pipelines in a real Airflow, against the schema of Argo; installs Airflow first'
	@echo 'make test-hdfs    HDFS against a real Hadoop; fetches it from Maven Central first'
	@echo 'make test-survival  a mount whose daemon is killed a hundred times (KILLS=1000: more)'
	@echo 'make stress       tests beside busy loops (PART=tests/pfs ROUNDS=10 LOOPS=2)'
	@echo 'make check        lint, formatting, types, import contracts'
	@echo 'make update       lock the newest versions of all dependencies'
	@echo 'make format       let ruff fix what it can'
	@echo 'make bench        every figure beside a peer, some minutes (bench-short: about one); TRACE=philly.csv for more'
	@echo 'make bench-fs     the filesystem beside ext4 and rclone, some minutes (bench-fs-short: about two)'
	@echo 'make clean        remove the environment and all caches'

demo: setup-demo
	@exec $(BIN)/python demo/demo.py

test: setup setup-postgres setup-storage
	$(PYTEST) -n $(WORKERS) --dist loadfile

smoke: setup setup-wheel
	PADDLEFLOW_SMOKE_BIN=$(CURDIR)/.venv-wheel/bin $(PYTEST) tests/smoke

nightly:
	@.ci/nightly

# What starts a process or a mount, and so meets a machine that is busy with something else.
PART ?= tests/agents tests/cli tests/contracts tests/e2e tests/files tests/http tests/objects tests/pfs tests/sdk tests/sql
ROUNDS ?= 10
LOOPS ?= 2
stress: setup setup-postgres setup-storage
	@.ci/stress $(ROUNDS) $(LOOPS) $(PYTEST) -q -n $(WORKERS) --dist loadfile $(PART)

SEED := $(or $(SEED),$(shell date +%s))
test-random: setup setup-postgres setup-storage
	@echo 'hypothesis draws from seed $(SEED)'
	PADDLEFLOW_HYPOTHESIS_SEED=$(SEED) $(PYTEST) -n $(WORKERS) --dist loadfile --hypothesis-seed=$(SEED)

HISTORIES ?= 1000000
test-long: setup
	PADDLEFLOW_HISTORIES=$(HISTORIES) $(PYTEST) -n $(WORKERS) tests/properties/test_scheduling.py

# The reference is generated with the locked click; the suite that old releases of fsspec carry is not made for our pytest.
test-lowest: setup-lowest setup-postgres setup-storage
	$(BIN)/python tests/contained.py .venv-lowest/bin/python -m pytest -n $(WORKERS) --dist loadfile \
		--deselect tests/docs/test_docs.py::test_the_reference_is_up_to_date -W ignore::pytest.PytestRemovedIn10Warning

test-frameworks: setup
	PYTHON=$(PYTHON) tests/frameworks/install.sh
	PADDLEFLOW_TEST_FRAMEWORKS=1 $(PYTEST) -v tests/frameworks

test-mpi: setup
	PYTHON=$(PYTHON) tests/frameworks/install.sh mpi4py
	PADDLEFLOW_TEST_FRAMEWORKS=1 $(PYTEST) -v tests/frameworks -k mpi

test-airflow: setup setup-airflow
	PADDLEFLOW_AIRFLOW_PYTHON=$(CURDIR)/.venv-airflow/bin/python $(PYTEST) -v tests/exports

# A real HDFS: Hadoop's own, from Maven Central. Needs Java and mvn.
test-hdfs: setup
	PADDLEFLOW_TEST_HDFS=1 $(PYTEST) -v tests/objects/test_hdfs.py

KILLS ?= 100
test-survival: setup setup-storage
	PADDLEFLOW_KILLS=$(KILLS) $(PYTEST) -v -s tests/pfs/test_survival.py

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup-demo setup-slurm setup-peers setup-airflow
	@exec $(BIN)/python -m bench $(if $(TRACE),--trace $(TRACE))

bench-short: setup-demo setup-slurm setup-peers
	@exec $(BIN)/python -m bench --short

bench-fs: setup setup-storage
	@exec $(BIN)/python -m bench.storage

bench-fs-short: setup setup-storage
	@exec $(BIN)/python -m bench.storage --short

setup: $(VENV)/.installed-dev
setup-demo: $(VENV)/.installed-server

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo 'PaddleFlow needs Python 3.11 or newer, and $(PYTHON) was not found: set PYTHON=...' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "PaddleFlow needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1): set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || .ci/apt-install 'virtual environments need ensurepip' python3-venv
	@echo 'creating $(VENV)'
	@$(PYTHON) -m venv $(VENV)

# A stamp for each set of dependencies: pip runs once, and again when what is locked changes.
# The versions are those of requirements/, with hashes, so that every machine gets the same.
$(VENV)/.installed-server: pyproject.toml requirements/demo.txt | $(BIN)/python
	@echo 'installing paddleflow into $(VENV)'
	@$(BIN)/python $(PIP_INSTALL) --require-hashes -r requirements/demo.txt
	@$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml requirements/dev.txt | $(BIN)/python
	@echo 'installing paddleflow and its development tools into $(VENV)'
	@$(BIN)/python $(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# The wheel of this tree, in an environment with nothing but what a server needs: what a user gets.
setup-wheel: setup .venv-wheel/.installed
	@rm -rf dist
	@$(BIN)/python -m hatchling build -t wheel >/dev/null
	@.venv-wheel/bin/python $(PIP_INSTALL) --no-deps --no-index --force-reinstall dist/*.whl
.venv-wheel/.installed: requirements/server.txt | $(BIN)/python
	@echo 'installing what a server needs into .venv-wheel'
	@$(PYTHON) -m venv --clear .venv-wheel
	@.venv-wheel/bin/python $(PIP_INSTALL) --require-hashes -r requirements/server.txt
	@touch $@

# The oldest versions that pyproject.toml allows.
setup-lowest: setup .venv-lowest/.installed
.venv-lowest/.installed: pyproject.toml requirements/lowest.txt
	@echo 'installing the oldest allowed versions into .venv-lowest'
	@$(PYTHON) -m venv --clear .venv-lowest
	@.venv-lowest/bin/python $(PIP_INSTALL) --require-hashes -r requirements/lowest.txt
	@.venv-lowest/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# The newest versions that the registry has and pyproject.toml allows.
update: | $(BIN)/python
	@test -x .venv-uv/bin/uv || { $(PYTHON) -m venv .venv-uv && .venv-uv/bin/python $(PIP_INSTALL) uv; }
	@.ci/lock .venv-uv/bin/uv --upgrade

# The store is tested against a real PostgreSQL, started by the tests themselves.
setup-postgres:
	@command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 \
		|| .ci/apt-install 'the tests start a PostgreSQL of their own' postgresql

# Mounts of ordinary users need fusermount3; SFTP is tested against OpenSSH's server.
setup-storage:
	@command -v fusermount3 >/dev/null || .ci/apt-install 'mounts of ordinary users need fusermount3' fuse3
	@PATH="$$PATH:/usr/sbin" command -v sshd >/dev/null || .ci/apt-install 'SFTP is tested against OpenSSH' openssh-server

# The peer of the bench. Without it the bench runs and says that Slurm was not measured.
setup-slurm:
	@PATH="$$PATH:/usr/sbin" command -v slurmctld >/dev/null || .ci/apt-install 'the bench compares with Slurm' slurm-wlm munge \
		|| echo 'going on without Slurm' >&2

# The pipeline engines the bench compares with. One that cannot be installed is named in the table and left out.
setup-peers: .venv-peers/.installed
.venv-peers/.installed: bench/requirements-peers.txt | $(BIN)/python
	@echo 'installing Luigi, Prefect and Dagster into .venv-peers'
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python $(PIP_INSTALL) -r bench/requirements-peers.txt && touch $@ \
		|| echo 'going on without them' >&2

setup-airflow: | $(BIN)/python
	@$(PYTHON) tests/exports/make_airflow.py .venv-airflow >/dev/null

clean:
	rm -rf $(VENV) .venv-airflow .venv-lowest .venv-peers .venv-uv .venv-wheel .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .make bench/results build dist
