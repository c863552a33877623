#!/usr/bin/env bash
# Checks that systemd rates the exposure of the server's unit at 3 or less.
#
#   unit_test.sh UNIT
set -euo pipefail
systemd-analyze security --offline=yes --threshold=30 --no-pager "$1" | tail -n 1
