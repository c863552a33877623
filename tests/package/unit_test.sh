#!/usr/bin/env bash
# The server's unit gives away little: its exposure, as systemd judges it, is 3 or less.
#
#   unit_test.sh UNIT
set -euo pipefail
systemd-analyze security --offline=yes --threshold=30 --no-pager "$1" | tail -n 1
