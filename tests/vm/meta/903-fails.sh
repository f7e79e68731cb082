#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a test that fails, and says why
# drivers: 7.3/none
# devices: 0
echo "# FAIL one is not two"
exit 1
