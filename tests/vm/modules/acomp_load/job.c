// SPDX-License-Identifier: GPL-2.0
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "codec.h"
#include "job.h"

#define MAX_ERRNOS 16

enum op { OP_COMP, OP_DECOMP, OP_COUNT };

static const char * const op_names[OP_COUNT] = {
	[OP_COMP] = "comp",
	[OP_DECOMP] = "decomp",
};

struct errno_count {
	int err;	/* 0: slot is free */
	u64 count;
};

/* What one thread counts; it alone writes, job_show() looks on. */
struct tally {
	u64 ok[OP_COUNT];
	u64 failed[OP_COUNT];
	struct errno_count errnos[OP_COUNT][MAX_ERRNOS];
	u64 mismatches;
	u64 sources;		/* that were not what they had been, afterwards */
	u64 overruns;
	u64 bytes_plain;	/* of successful compressions, in and out */
	u64 bytes_comp;
	u64 max_ns;
	u64 bad_round;		/* the first mismatch: where and what */
	u32 bad_offset;
	u32 bad_len, want_len;
	u8 bad_got, bad_want;
};

struct cpu_tally {
	u64 ok;
	u64 failed;
};

/* A stream prepared at the start, with what it was made of. */
struct pair {
	struct blob plain;
	struct blob comp;
};

struct worker {
	struct job *job;
	struct task_struct *task;
	unsigned int id;
	struct rnd_state rnd;
	struct codec *comp, *decomp;
	struct sgbuf src, dst;
	u8 *plain, *packed, *unpacked;	/* linear sides of the buffers */
	struct pair *pairs;
	u64 round;
	s64 op_since;		/* ktime of the operation in flight; 0: none */
	int setup_error;
	struct tally tally;
	struct cpu_tally *cpus;
};

struct job {
	struct kref ref;
	struct settings set;
	struct blob data, stream, expect;
	unsigned int room;	/* for compressed bytes */
	ktime_t began, ended;
	atomic_t live;		/* threads that have not ended */
	atomic_t ready;		/* threads that have prepared everything */
	bool stop;
	bool go;
	wait_queue_head_t wait;
	struct worker workers[];	/* set.threads of them */
};

/**
 * blob_copy() - copy bytes
 * @to: overwritten
 * @from: may be empty
 *
 * Return: 0 or -ENOMEM.
 */
int blob_copy(struct blob *to, const struct blob *from)
{
	*to = (struct blob){};
	if (!from->len)
		return 0;
	to->data = kvmalloc(from->len, GFP_KERNEL);
	if (!to->data)
		return -ENOMEM;
	memcpy(to->data, from->data, from->len);
	to->len = from->len;
	return 0;
}

void blob_free(struct blob *blob)
{
	kvfree(blob->data);
	*blob = (struct blob){};
}

static void job_release(struct kref *ref)
{
	struct job *job = container_of(ref, struct job, ref);
	unsigned int i;

	for (i = 0; i < job->set.threads; i++)
		kfree(job->workers[i].cpus);
	blob_free(&job->data);
	blob_free(&job->stream);
	blob_free(&job->expect);
	kvfree(job);
}

/**
 * job_put() - drop a reference
 * @job: freed with the last one
 */
void job_put(struct job *job)
{
	kref_put(&job->ref, job_release);
}

static void count_errno(struct errno_count *table, int err)
{
	unsigned int i;

	for (i = 0; i < MAX_ERRNOS; i++) {
		if (table[i].err && table[i].err != err)
			continue;
		table[i].err = err;
		table[i].count++;
		return;
	}
}

/* Carries out one operation and counts how it went. */
static int worker_op(struct worker *w, enum op which, struct codec *codec, const u8 *src,
		     size_t slen, size_t room, unsigned int *made)
{
	const struct settings *set = &w->job->set;
	unsigned int cpu, dlen = room + set->dlen_lie;
	ktime_t began = ktime_get();
	u64 took;
	int err;

	WRITE_ONCE(w->op_since, ktime_to_ns(began));
	if (which == OP_COMP)
		err = codec_compress(codec, w->src.sgl, slen + set->slen_lie, w->dst.sgl, &dlen);
	else
		err = codec_decompress(codec, w->src.sgl, slen + set->slen_lie, w->dst.sgl, &dlen);
	took = ktime_to_ns(ktime_sub(ktime_get(), began));
	WRITE_ONCE(w->op_since, 0);

	cpu = raw_smp_processor_id();
	w->tally.max_ns = max(w->tally.max_ns, took);
	w->tally.overruns += sgbuf_overruns(&w->src) + sgbuf_overruns(&w->dst);
	w->tally.sources += !sgbuf_holds(&w->src, src, slen);
	if (!err && dlen > room + set->dlen_lie)
		err = -EOVERFLOW;	/* made more than there was room for */
	if (err) {
		w->tally.failed[which]++;
		w->cpus[cpu].failed++;
		count_errno(w->tally.errnos[which], err);
		return err;
	}
	w->tally.ok[which]++;
	w->cpus[cpu].ok++;
	*made = min_t(unsigned int, dlen, room);
	return 0;
}

static int worker_compress(struct worker *w, size_t len, unsigned int *made)
{
	int err;

	sgbuf_layout(&w->src, len, &w->rnd);
	sgbuf_write(&w->src, w->plain, len);
	sgbuf_layout(&w->dst, w->job->room, &w->rnd);
	err = worker_op(w, OP_COMP, w->comp, w->plain, len, w->job->room, made);
	if (err)
		return err;
	sgbuf_read(&w->dst, w->packed, *made);
	w->tally.bytes_plain += len;
	w->tally.bytes_comp += *made;
	return 0;
}

/* Decompresses a stream and compares; want is NULL where only the result counts. */
static void worker_decompress(struct worker *w, const struct blob *stream, const u8 *want,
			      size_t want_len, size_t room)
{
	unsigned int made = 0;
	size_t i;

	sgbuf_layout(&w->src, stream->len, &w->rnd);
	sgbuf_write(&w->src, stream->data, stream->len);
	sgbuf_layout(&w->dst, room, &w->rnd);
	if (worker_op(w, OP_DECOMP, w->decomp, stream->data, stream->len, room, &made) || !want)
		return;
	sgbuf_read(&w->dst, w->unpacked, made);
	if (made == want_len && !memcmp(w->unpacked, want, want_len))
		return;
	if (!w->tally.mismatches++) {
		for (i = 0; i < min_t(size_t, made, want_len) && w->unpacked[i] == want[i]; i++)
			;
		w->tally.bad_round = w->round;
		w->tally.bad_offset = i;
		w->tally.bad_len = made;
		w->tally.want_len = want_len;
		w->tally.bad_got = i < made ? w->unpacked[i] : 0;
		w->tally.bad_want = i < want_len ? want[i] : 0;
	}
}

static size_t worker_fill(struct worker *w)
{
	const struct settings *set = &w->job->set;
	const struct blob *data = &w->job->data;
	size_t len = set->size_min + pattern_below(&w->rnd, set->size_max - set->size_min + 1);

	if (set->pattern == PATTERN_DATA)
		memcpy(w->plain, data->data + pattern_below(&w->rnd, data->len - len + 1), len);
	else
		pattern_fill(set->pattern, w->plain, len, &w->rnd);
	return len;
}

static void worker_round(struct worker *w)
{
	struct job *job = w->job;
	struct blob packed = { .data = w->packed };
	unsigned int made;
	struct pair *pair;
	size_t len;

	switch (job->set.mode) {
	case MODE_COMPRESS:
		worker_compress(w, worker_fill(w), &made);
		break;
	case MODE_DECOMPRESS:
		pair = &w->pairs[w->round % job->set.streams];
		worker_decompress(w, &pair->comp, pair->plain.data, pair->plain.len,
				  pair->plain.len);
		break;
	case MODE_STREAM:
		worker_decompress(w, &job->stream, job->expect.data, job->expect.len,
				  job->set.size_max);
		break;
	default:
		len = worker_fill(w);
		if (worker_compress(w, len, &made))
			break;
		packed.len = made;
		worker_decompress(w, &packed, w->plain, len, len);
		break;
	}
}

/* Streams are made before the clock and the counters start. */
static int worker_prepare(struct worker *w)
{
	unsigned int i;

	w->pairs = kvcalloc(w->job->set.streams, sizeof(*w->pairs), GFP_KERNEL);
	if (!w->pairs)
		return -ENOMEM;
	for (i = 0; i < w->job->set.streams; i++) {
		struct blob plain = { .data = w->plain, .len = worker_fill(w) };
		struct blob packed = { .data = w->packed };
		unsigned int made;
		int err;

		err = worker_compress(w, plain.len, &made);
		packed.len = made;
		err = err ?: blob_copy(&w->pairs[i].plain, &plain);
		err = err ?: blob_copy(&w->pairs[i].comp, &packed);
		if (err)
			return err;
	}
	w->tally = (struct tally){};
	memset(w->cpus, 0, nr_cpu_ids * sizeof(*w->cpus));
	return 0;
}

static int worker_setup(struct worker *w)
{
	struct job *job = w->job;
	const struct settings *set = &job->set;
	size_t longest = max3(set->size_max, job->room, (unsigned int)job->stream.len);
	int err;

	if (set->mode != MODE_STREAM) {
		w->comp = codec_open(set->comp, &set->manner);
		if (IS_ERR(w->comp))
			return PTR_ERR(w->comp);
	}
	/* One transform serves both directions, as in zswap. */
	w->decomp = w->comp && !strcmp(set->comp, set->decomp) ? w->comp :
		    codec_open(set->decomp, &set->manner);
	if (IS_ERR(w->decomp))
		return PTR_ERR(w->decomp);
	err = sgbuf_init(&w->src, &set->src, longest, set->guard) ?:
	      sgbuf_init(&w->dst, &set->dst, longest, set->guard);
	if (err)
		return err;
	w->plain = kvmalloc(longest, GFP_KERNEL);
	w->packed = kvmalloc(longest, GFP_KERNEL);
	w->unpacked = kvmalloc(longest, GFP_KERNEL);
	if (!w->plain || !w->packed || !w->unpacked)
		return -ENOMEM;
	return set->mode == MODE_DECOMPRESS ? worker_prepare(w) : 0;
}

static void worker_cleanup(struct worker *w)
{
	unsigned int i;

	for (i = 0; w->pairs && i < w->job->set.streams; i++) {
		blob_free(&w->pairs[i].plain);
		blob_free(&w->pairs[i].comp);
	}
	kvfree(w->pairs);
	if (w->decomp != w->comp)
		codec_close(w->decomp);
	codec_close(w->comp);
	sgbuf_free(&w->src);
	sgbuf_free(&w->dst);
	kvfree(w->plain);
	kvfree(w->packed);
	kvfree(w->unpacked);
}

static bool job_expired(struct job *job)
{
	if (READ_ONCE(job->stop))
		return true;
	return job->set.seconds &&
	       ktime_ms_delta(ktime_get(), job->began) >= job->set.seconds * 1000LL;
}

static int worker_main(void *arg)
{
	struct worker *w = arg;
	struct job *job = w->job;
	const struct settings *set = &job->set;

	prandom_seed_state(&w->rnd, set->seed + w->id);
	w->setup_error = worker_setup(w);
	if (!w->setup_error) {
		/* The last one to be ready starts the clock, unless "go" is awaited. */
		if (atomic_inc_return(&job->ready) == set->threads && !set->hold)
			job_go(job);
		wait_event_interruptible(job->wait, READ_ONCE(job->go) || READ_ONCE(job->stop));
		while (!job_expired(job) && (!set->count || w->round < set->count)) {
			worker_round(w);
			w->round++;
			if (set->pause_us)
				usleep_range(set->pause_us, set->pause_us + set->pause_us / 8 + 1);
			cond_resched();
		}
	} else {
		/* The others need not wait for one that never gets ready. */
		job_stop(job);
	}
	worker_cleanup(w);
	if (atomic_dec_and_test(&job->live))
		job->ended = ktime_get();
	job_put(job);
	module_put_and_kthread_exit(0);
	return 0;
}

/**
 * job_go() - let prepared threads begin
 * @job: one that was started with hold, or whose threads are all ready
 */
void job_go(struct job *job)
{
	if (!READ_ONCE(job->go))
		job->began = ktime_get();
	WRITE_ONCE(job->go, true);
	wake_up_all(&job->wait);
}

/**
 * job_stop() - ask the threads to end after the operation they are in
 * @job: any
 */
void job_stop(struct job *job)
{
	WRITE_ONCE(job->stop, true);
	wake_up_all(&job->wait);
}

/**
 * job_done() - have all threads ended?
 * @job: any
 *
 * Return: true where nothing of it runs any more.
 */
bool job_done(struct job *job)
{
	return !atomic_read(&job->live);
}

static void worker_drop(struct worker *w)
{
	kthread_stop(w->task);	/* never woken: ends without having run */
	job_put(w->job);
	module_put(THIS_MODULE);
}

static int worker_create(struct worker *w)
{
	struct job *job = w->job;
	unsigned int cpu, turn;

	w->cpus = kcalloc(nr_cpu_ids, sizeof(*w->cpus), GFP_KERNEL);
	if (!w->cpus)
		return -ENOMEM;
	w->task = kthread_create(worker_main, w, "acomp_load/%u", w->id);
	if (IS_ERR(w->task))
		return PTR_ERR(w->task);
	if (job->set.pinned) {
		turn = w->id % cpumask_weight(&job->set.cpus);
		for_each_cpu(cpu, &job->set.cpus)
			if (!turn--)
				break;
		kthread_bind(w->task, cpu);
	}
	kref_get(&job->ref);
	__module_get(THIS_MODULE);
	return 0;
}

/* Deflate may need a little more than it is given: 9 bits a byte in the fixed code. */
static unsigned int job_room(const struct settings *set)
{
	return set->room ?: set->size_max + set->size_max / 4 + 64;
}

/**
 * job_start() - start the threads of a job
 * @set: what to do; its CPUs are cut down to those online
 * @data: sample data for PATTERN_DATA, else unused
 * @stream: for MODE_STREAM
 * @expect: what @stream decompresses to; empty where only the result counts
 *
 * Return: the job, the caller's reference to it, or an error pointer.
 */
struct job *job_start(const struct settings *set, const struct blob *data,
		      const struct blob *stream, const struct blob *expect)
{
	unsigned int i;
	struct job *job;
	int err;

	if ((set->pattern == PATTERN_DATA && data->len < set->size_max) ||
	    (set->mode == MODE_STREAM && !stream->len))
		return ERR_PTR(-ENODATA);
	job = kvzalloc(struct_size(job, workers, set->threads), GFP_KERNEL);
	if (!job)
		return ERR_PTR(-ENOMEM);
	kref_init(&job->ref);
	init_waitqueue_head(&job->wait);
	job->set = *set;
	job->room = job_room(set);
	job->began = ktime_get();
	err = blob_copy(&job->data, data) ?: blob_copy(&job->stream, stream) ?:
	      blob_copy(&job->expect, expect);
	if (err)
		goto fail;
	for (i = 0; i < set->threads; i++) {
		job->workers[i].job = job;
		job->workers[i].id = i;
	}

	/* No thread runs before all exist, so that a failure has nothing to stop. */
	cpus_read_lock();
	cpumask_and(&job->set.cpus, &set->cpus, cpu_online_mask);
	for (i = 0; i < set->threads && !err; i++)
		err = set->pinned && cpumask_empty(&job->set.cpus) ? -ENXIO :
		      worker_create(&job->workers[i]);
	cpus_read_unlock();
	if (err) {
		while (--i > 0)
			worker_drop(&job->workers[i - 1]);
		goto fail;
	}
	atomic_set(&job->live, set->threads);
	for (i = 0; i < set->threads; i++)
		wake_up_process(job->workers[i].task);
	return job;
fail:
	job_put(job);
	return ERR_PTR(err);
}

static u64 job_stuck_ns(const struct job *job, const struct worker *w)
{
	s64 since = READ_ONCE(w->op_since);

	return since ? max_t(s64, ktime_to_ns(ktime_get()) - since, 0) : 0;
}

static void show_errnos(struct seq_file *seq, struct job *job, enum op kind)
{
	struct errno_count sum[MAX_ERRNOS] = {};
	unsigned int i, j, k;

	for (i = 0; i < job->set.threads; i++) {
		const struct errno_count *table = job->workers[i].tally.errnos[kind];

		for (j = 0; j < MAX_ERRNOS && table[j].err; j++) {
			for (k = 0; k < MAX_ERRNOS - 1; k++)
				if (!sum[k].err || sum[k].err == table[j].err)
					break;
			sum[k].err = table[j].err;
			sum[k].count += table[j].count;
		}
	}
	for (k = 0; k < MAX_ERRNOS && sum[k].err; k++)
		seq_printf(seq, "%s_errno_%d=%llu\n", op_names[kind], -sum[k].err, sum[k].count);
}

static void show_cpus(struct seq_file *seq, struct job *job)
{
	unsigned int cpu, i;

	for_each_possible_cpu(cpu) {
		struct cpu_tally sum = {};

		for (i = 0; i < job->set.threads; i++) {
			sum.ok += job->workers[i].cpus[cpu].ok;
			sum.failed += job->workers[i].cpus[cpu].failed;
		}
		if (sum.ok || sum.failed)
			seq_printf(seq, "cpu%u_ok=%llu\ncpu%u_failed=%llu\n",
				   cpu, sum.ok, cpu, sum.failed);
	}
}

/**
 * job_show() - write a job's state and counts, one key=value a line
 * @seq: to write to
 * @job: running or ended
 */
void job_show(struct seq_file *seq, struct job *job)
{
	const struct settings *set = &job->set;
	struct tally sum = {};
	struct worker *bad = NULL;
	unsigned int i, stuck = 0, live = atomic_read(&job->live);
	u64 rounds = 0, longest = 0;
	int setup_error = 0;
	ktime_t end;

	for (i = 0; i < set->threads; i++) {
		struct worker *w = &job->workers[i];
		const struct tally *t = &w->tally;
		u64 waiting = job_stuck_ns(job, w);
		unsigned int kind;

		for (kind = 0; kind < OP_COUNT; kind++) {
			sum.ok[kind] += t->ok[kind];
			sum.failed[kind] += t->failed[kind];
		}
		sum.mismatches += t->mismatches + t->sources;
		sum.sources += t->sources;
		sum.overruns += t->overruns;
		sum.bytes_plain += t->bytes_plain;
		sum.bytes_comp += t->bytes_comp;
		sum.max_ns = max(sum.max_ns, t->max_ns);
		rounds += READ_ONCE(w->round);
		longest = max(longest, waiting);
		if (waiting > set->stuck_ms * 1000000ULL)
			stuck++;
		if (t->mismatches && !bad)
			bad = w;
		setup_error = setup_error ?: READ_ONCE(w->setup_error);
	}
	end = live ? ktime_get() : job->ended;

	seq_printf(seq, "state=%s\n", !live ? "done" : stuck == live ? "stuck" : "running");
	seq_printf(seq, "mode=%s\ncomp=%s\ndecomp=%s\npattern=%s\n", mode_names[set->mode],
		   set->comp, set->decomp, pattern_names[set->pattern]);
	seq_printf(seq, "threads=%u\nlive=%u\nready=%u\nstuck=%u\n", set->threads, live,
		   atomic_read(&job->ready), stuck);
	seq_printf(seq, "setup_errno=%d\nrounds=%llu\n", -setup_error, rounds);
	seq_printf(seq, "comp_ok=%llu\ncomp_failed=%llu\n", sum.ok[OP_COMP], sum.failed[OP_COMP]);
	seq_printf(seq, "decomp_ok=%llu\ndecomp_failed=%llu\n",
		   sum.ok[OP_DECOMP], sum.failed[OP_DECOMP]);
	seq_printf(seq, "mismatches=%llu\nsources_changed=%llu\noverruns=%llu\n",
		   sum.mismatches, sum.sources, sum.overruns);
	seq_printf(seq, "bytes_plain=%llu\nbytes_comp=%llu\n", sum.bytes_plain, sum.bytes_comp);
	seq_printf(seq, "max_us=%llu\nwaiting_ms=%llu\nelapsed_ms=%lld\n", sum.max_ns / 1000,
		   longest / 1000000, ktime_ms_delta(end, job->began));
	show_errnos(seq, job, OP_COMP);
	show_errnos(seq, job, OP_DECOMP);
	show_cpus(seq, job);
	if (bad)
		seq_printf(seq, "first_mismatch=thread %u round %llu offset %u: length %u, expected %u; byte %#04x, expected %#04x\n",
			   bad->id, bad->tally.bad_round, bad->tally.bad_offset,
			   bad->tally.bad_len, bad->tally.want_len,
			   bad->tally.bad_got, bad->tally.bad_want);
}
