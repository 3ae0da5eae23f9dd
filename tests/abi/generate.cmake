# SPDX-License-Identifier: Apache-2.0
# Runs layout.py with its output in a file.
execute_process(COMMAND "${PYTHON}" "${SCRIPT}" "${HEADER}" OUTPUT_FILE "${OUT}" COMMAND_ERROR_IS_FATAL ANY)
