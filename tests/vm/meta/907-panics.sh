#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a test that takes the kernel with it
# drivers: 7.3/none
# devices: 0
echo c >/proc/sysrq-trigger
sleep 60
