#!/bin/sh
# Installs the training frameworks that tests/frameworks runs, in an environment of their own: they are gigabytes, and
# none of them is a dependency of PaddleFlow. What cannot be installed is said, and its tests are skipped.
# usage: install.sh [PACKAGE...], all of them by default
set -u

packages=${*:-numpy torch paddlepaddle tensorflow-cpu mpi4py ray pyspark}
venv=${PADDLEFLOW_FRAMEWORKS_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/paddleflow/frameworks}
here=$(dirname "$0")
apt_install="$here/../../.ci/apt-install"

wanted() { case " $packages " in *" $1 "*) ;; *) false ;; esac; }

if wanted mpi4py && ! command -v mpirun >/dev/null; then
    "$apt_install" 'MPI jobs are run by Open MPI' openmpi-bin libopenmpi-dev || echo 'going on without Open MPI' >&2
fi
if wanted pyspark && ! command -v java >/dev/null; then
    "$apt_install" 'Spark needs Java' default-jre-headless || echo 'going on without Java' >&2
fi

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv" || exit 1

# One by one: where one has no wheel for this Python, the others still come.
for package in $packages; do
    "$venv/bin/python" -m pip show --quiet "$package" 2>/dev/null && continue
    echo "installing $package into $venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$package" || echo "going on without $package" >&2
done
