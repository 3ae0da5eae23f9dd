#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Starts a program many times, some at a time. Usage: churn.sh TIMES AT-ONCE PROGRAM
set -euo pipefail
for ((i = 0; i < $1; i++)); do
  while (($(jobs -rp | wc -l) >= $2)); do wait -n; done
  "$3" >/dev/null &
done
for job in $(jobs -p); do wait "$job"; done
