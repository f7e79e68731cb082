#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a test that skips, and says why
# drivers: 7.3/none
# devices: 0
echo "# SKIP there is no reason to run"
exit 77
