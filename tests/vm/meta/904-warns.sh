#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shows: a test that makes the kernel warn
# drivers: 7.3/none
# devices: 0
printf '<4>------------[ cut here ]------------\n' >/dev/kmsg
printf '<4>WARNING: CPU: 0 PID: 1 at meta.c:1 meta+0x1/0x2\n' >/dev/kmsg
