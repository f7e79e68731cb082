#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a test that never ends
# drivers: 7.3/none
# devices: 0
# limit: 5
sleep 1000
