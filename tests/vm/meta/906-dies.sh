#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a test that takes the guest with it
# drivers: 7.3/none
# devices: 0
echo b >/proc/sysrq-trigger
sleep 60
