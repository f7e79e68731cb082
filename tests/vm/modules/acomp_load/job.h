/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ACOMP_LOAD_JOB_H
#define ACOMP_LOAD_JOB_H

#include <linux/types.h>

#include "settings.h"

struct job;
struct seq_file;

/* Bytes that user space gave: sample data, a stream, what it decompresses to. */
struct blob {
	u8 *data;
	size_t len;
};

int blob_copy(struct blob *to, const struct blob *from);
void blob_free(struct blob *blob);

/*
 * A job runs on after its owner's job_put(), until its threads have ended. A
 * thread whose request is never answered stays, with what the device may still
 * write to, and keeps the module loaded.
 */
struct job *job_start(const struct settings *set, const struct blob *data,
		      const struct blob *stream, const struct blob *expect);
void job_go(struct job *job);
void job_stop(struct job *job);
bool job_done(struct job *job);
void job_put(struct job *job);
void job_show(struct seq_file *seq, struct job *job);

#endif
