/* SPDX-License-Identifier: GPL-2.0 */
/* Objects of the driver and what its files ask of each other. */
#ifndef IAA_H
#define IAA_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/sbitmap.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "compat/acomp.h"
#include "compat/idxd.h"
#include "hw.h"
#include "modes/modes.h"
#include "stats/stats.h"
#include "sync_mode.h"

/* Input up to this size goes through buffers that are mapped once for all. */
#define IAA_SMALL		PAGE_SIZE
/* The same for output: holds whatever a small input compresses to, in any mode. */
#define IAA_SMALL_OUT		(2 * PAGE_SIZE)
/* What is gathered from many segments may be this large. */
#define IAA_LARGE		(32 * PAGE_SIZE)
/* Pairs of large buffers a device has. */
#define IAA_LARGE_COUNT		4
/* Operations that a device may tell of, as bits. */
#define IAA_OPCAP_BITS		256

struct iaa_wq;

/**
 * struct iaa_buffer - memory of the driver that the device may use at any time
 * @va: where the CPU sees it
 * @dma: where the device does
 */
struct iaa_buffer {
	void *va;
	dma_addr_t dma;
};

/**
 * struct iaa_large - a pair of large buffers
 * @src: for input
 * @dst: for output
 */
struct iaa_large {
	struct iaa_buffer src;
	struct iaa_buffer dst;
};

/**
 * struct iaa_device - an IAA device, there while it has bound WQs
 * @node: entry in iaa_devices
 * @config_lock: held while a WQ is enabled, and while one that is reset has no configuration;
 *	taken within the wq_lock of that WQ
 * @idxd: idxd's object
 * @dev: the PCI function, for DMA
 * @aecs: the tables of the compression mode, in coherent memory
 * @aecs_dma: their DMA address
 * @large: pairs of large buffers
 * @n_large: how many there are
 * @large_busy: a bit for each that is borrowed
 * @n_wqs: WQs bound
 * @id: number in the device's name
 */
struct iaa_device {
	struct list_head node;
	struct mutex config_lock;	/* see above */
	struct idxd_device *idxd;
	struct device *dev;
	struct iaa_aecs_comp *aecs;
	dma_addr_t aecs_dma;
	struct iaa_large large[IAA_LARGE_COUNT];
	unsigned int n_large;
	unsigned long large_busy;
	unsigned int n_wqs;
	int id;
};

/**
 * enum iaa_place_kind - how a request's data gets to the device
 * @IAA_IN_NONE: not yet
 * @IAA_IN_BUFFER: copied through one of the driver's buffers
 * @IAA_IN_PLACE: mapped where it is
 */
enum iaa_place_kind {
	IAA_IN_NONE,
	IAA_IN_BUFFER,
	IAA_IN_PLACE,
};

/**
 * struct iaa_side - source or destination of a request, as the device sees it
 * @kind: how it gets there
 * @buf: the buffer, for IAA_IN_BUFFER
 * @dma: its DMA address
 * @len: bytes
 * @dir: DMA direction of the mapping, for IAA_IN_PLACE
 * @attrs: DMA attributes for its end
 */
struct iaa_side {
	enum iaa_place_kind kind;
	void *buf;
	dma_addr_t dma;
	u32 len;
	enum dma_data_direction dir;
	unsigned long attrs;
};

/**
 * enum iaa_slot_state - who may end what a slot's descriptor was submitted for
 * @IAA_SLOT_OWNED: whoever holds the slot
 * @IAA_SLOT_STARTING: the interrupt, while the submitter is still at it
 * @IAA_SLOT_RUNNING: the first to take it, of the interrupt and of the watch over lost ones
 * @IAA_SLOT_LOST: it was not answered in time; its WQ's health
 *
 * In &iaa_slot.state, below a number that tells one use of the slot from the next.
 */
enum iaa_slot_state {
	IAA_SLOT_OWNED,
	IAA_SLOT_STARTING,
	IAA_SLOT_RUNNING,
	IAA_SLOT_LOST,
};

#define IAA_SLOT_STATE_MASK	3
#define IAA_SLOT_USE		4

/**
 * enum iaa_stage - which of a request's descriptors is under way
 * @IAA_STAGE_RUN: the one that does what is asked for
 * @IAA_STAGE_TO_VERIFY: none; the one that reads the output back is filled in
 * @IAA_STAGE_VERIFY: that one
 */
enum iaa_stage {
	IAA_STAGE_RUN,
	IAA_STAGE_TO_VERIFY,
	IAA_STAGE_VERIFY,
};

/**
 * struct iaa_slot - a descriptor of a WQ, and what belongs to it
 * @iwq: the WQ
 * @desc: idxd's descriptor
 * @src: the source of the request in hand
 * @dst: its destination
 * @large: a pair of large buffers borrowed for it
 * @req: the request, where it is not the holder's own business
 * @started: when it began, by the TSC
 * @submitted: when the descriptor under way was submitted, in jiffies
 * @crc: checksum of what was compressed, until it is verified
 * @out_len: bytes of output, likewise
 * @stage: which descriptor is under way
 * @mode: how the request is completed
 * @compress: what it asks for
 * @check: the output is to be read back
 * @state: &enum iaa_slot_state and the number of the use
 * @seen: @state when the watch saw it answered; the watch's own
 * @listed: idxd has the descriptor in a list of those that interrupts are to end
 * @cpu: which CPU has taken the slot
 * @index: its number, the descriptor's
 * @reap: entry in a CPU's list of slots that came to be polled
 * @node: entry in a list of those that are, or in the WQ's of lost ones
 * @small_src: buffer for a small input
 * @small_dst: buffer for a small output
 */
struct iaa_slot {
	struct iaa_wq *iwq;
	struct idxd_desc *desc;
	struct iaa_side src;
	struct iaa_side dst;
	struct iaa_large *large;
	struct acomp_req *req;
	u64 started;
	unsigned long submitted;
	u32 crc;
	u32 out_len;
	enum iaa_stage stage;
	enum iaa_sync_mode mode;
	bool compress;
	bool check;
	atomic_t state;
	int seen;
	bool listed;
	int cpu;
	unsigned int index;
	struct llist_node reap;
	struct list_head node;
	struct iaa_buffer small_src;
	struct iaa_buffer small_dst;
} ____cacheline_aligned_in_smp;

/* So many free slots a CPU keeps for itself: a line of its cache. */
#define IAA_AT_HAND (SMP_CACHE_BYTES / sizeof(struct iaa_slot *))

/**
 * struct iaa_at_hand - free slots that a CPU has at hand
 * @slot: the slots, each taken and put with an exchange
 */
struct iaa_at_hand {
	struct iaa_slot *slot[IAA_AT_HAND];
} ____cacheline_aligned_in_smp;

/**
 * struct iaa_req_ctx - what a request carries for this driver
 * @work: does it in software
 * @req: the request
 * @compress: what it asks for
 */
struct iaa_req_ctx {
	struct work_struct work;
	struct acomp_req *req;
	bool compress;
};

/**
 * struct iaa_config - what idxd forgets of a WQ when it disables it
 * @name: as the administrator named it
 * @flags: dedicated, block on fault and the like
 * @threshold: of a shared WQ
 * @priority: among the WQs of its group
 * @enqcmds_retries: of a shared WQ
 * @max_xfer_bytes: transfer limit
 * @max_batch_size: batch limit
 * @opcap: operations that it allows
 */
struct iaa_config {
	char *name;
	unsigned long flags;
	u32 threshold;
	u32 priority;
	unsigned int enqcmds_retries;
	u64 max_xfer_bytes;
	u32 max_batch_size;
	unsigned long opcap[IAA_OPCAP_BITS / BITS_PER_LONG];
};

/**
 * struct iaa_wq - a bound WQ
 * @wq: idxd's object
 * @dev: its device
 * @ref: requests that use it; killed when it is reset or unbound
 * @failed: a descriptor was not answered in time, or not taken
 * @max_len: largest source and destination
 * @n_slots: how many slots there are
 * @slots: one for each descriptor
 * @at_hand: free slots of each CPU, outside of @pool
 * @pool: a bit for each slot that is not free
 * @stats: counters of each CPU
 * @watched: @watch is going to look
 * @irq: interrupts can end its descriptors
 * @watch: looks for descriptors whose interrupt does not come
 * @node: entry in iaa_wqs
 * @binding: number of this binding, of all that there have been
 * @config: its configuration
 * @enabled: idxd has it enabled; under idxd's wq_lock
 * @drained: @ref has come to nothing
 * @index: its index in the snapshot being built
 * @usable: to be routed to; under iaa_lock
 * @failed_at: when what is now waited for began, in jiffies
 * @owes: answers were owed when that was last looked at
 * @blocked: the log says that another WQ keeps it from being enabled
 * @comebacks: times that it was tried again since it last served for long
 * @back_at: when it was last put into use, in jiffies
 * @lost_lock: guards @lost and @closing
 * @lost: slots whose descriptors were not answered in time
 * @closing: it is being unbound: nobody starts @health any more
 * @health: looks after a failed WQ
 */
struct iaa_wq {
	/* What requests read, apart from what is written meanwhile. */
	struct idxd_wq *wq;
	struct iaa_device *dev;
	struct percpu_ref ref;
	unsigned long failed;
	u32 max_len;
	unsigned int n_slots;
	struct iaa_slot *slots;
	struct iaa_at_hand __percpu *at_hand;
	struct sbitmap pool;
	struct iaa_wq_stats __percpu *stats;
	unsigned long watched;
	bool irq;

	struct delayed_work watch ____cacheline_aligned_in_smp;
	struct list_head node;
	u64 binding;
	struct iaa_config config;
	bool enabled;
	struct completion drained;
	u16 index;
	bool usable;
	unsigned long failed_at;
	bool owes;
	bool blocked;
	unsigned int comebacks;
	unsigned long back_at;
	spinlock_t lost_lock;	/* guards lost and closing */
	struct list_head lost;
	bool closing;
	struct delayed_work health;
};

/* Guards the lists of devices and WQs, and the routes. */
extern struct mutex iaa_lock;
extern struct list_head iaa_devices;
extern struct list_head iaa_wqs;
extern struct workqueue_struct *iaa_workqueue;
extern struct workqueue_struct *iaa_admin_workqueue;

/* main.c */
extern unsigned int iaa_timeout_ms;

/* sysfs.c */
extern const struct attribute_group *iaa_driver_groups[];
extern bool iaa_verify_compress;
extern enum iaa_sync_mode iaa_sync_mode;
const char *iaa_sync_mode_name(enum iaa_sync_mode mode);

/* device.c */
struct iaa_device *iaa_device_get(struct idxd_device *idxd);
void iaa_device_put(struct iaa_device *dev);

/* wq.c */
extern struct idxd_device_driver iaa_driver;
int iaa_wq_reset(struct iaa_wq *iwq);
void iaa_wq_wake_irq(struct iaa_wq *iwq);

/* config.c */
int iaa_config_save(struct iaa_config *config, struct idxd_wq *wq);
void iaa_config_restore(const struct iaa_config *config, struct idxd_wq *wq);

/* health.c */
void iaa_wq_fail(struct iaa_wq *iwq, struct iaa_slot *slot);
void iaa_wq_refused(struct iaa_wq *iwq, int rc);
void iaa_wq_look(struct iaa_wq *iwq);
void iaa_wq_health(struct work_struct *work);
void iaa_wq_finish_lost(struct iaa_wq *iwq);

/* route.c */
int iaa_route_init(void);
void iaa_route_exit(void);
void iaa_route_publish(void);
struct iaa_slot *iaa_route_get(bool compress, u32 len, enum iaa_reason *reason);

/* slot.c */
int iaa_slots_alloc(struct iaa_wq *iwq);
void iaa_slots_free(struct iaa_wq *iwq);
int iaa_slots_claim(struct iaa_wq *iwq);
struct iaa_slot *iaa_slot_get_slow(struct iaa_wq *iwq, int cpu);
void iaa_slot_put_slow(struct iaa_slot *slot, struct iaa_at_hand *mine);

/**
 * iaa_slot_get() - take a free slot
 * @iwq: the WQ, which the caller has a reference of
 *
 * Return: the slot, or NULL where there is none.
 */
static inline struct iaa_slot *iaa_slot_get(struct iaa_wq *iwq)
{
	int cpu = raw_smp_processor_id();
	struct iaa_slot *slot = xchg(&per_cpu_ptr(iwq->at_hand, cpu)->slot[0], NULL);

	if (unlikely(!slot))
		slot = iaa_slot_get_slow(iwq, cpu);
	if (likely(slot))
		slot->cpu = cpu;
	return slot;
}

/**
 * iaa_slot_put() - give a slot back
 * @slot: the slot, which the device has done with
 *
 * It goes to the CPU that took it, wherever its end was seen.
 */
static inline void iaa_slot_put(struct iaa_slot *slot)
{
	struct iaa_at_hand *mine = per_cpu_ptr(slot->iwq->at_hand, slot->cpu);

	if (unlikely(cmpxchg(&mine->slot[0], NULL, slot)))
		iaa_slot_put_slow(slot, mine);
}

/* buffers.c */
void iaa_buffers_alloc_large(struct iaa_device *dev);
void iaa_buffers_free_large(struct iaa_device *dev);
int iaa_buffers_alloc(struct iaa_slot *slot);
void iaa_buffers_free(struct iaa_slot *slot);
int iaa_buffers_attach(struct iaa_slot *slot, struct acomp_req *req);
void iaa_buffers_detach(struct iaa_slot *slot);
void iaa_buffers_copy_out(struct iaa_slot *slot, struct acomp_req *req, u32 len);

/* operation.c */
void iaa_op_begin(struct iaa_slot *slot);
int iaa_op_submit(struct iaa_slot *slot, bool irq);
bool iaa_op_answered(struct iaa_slot *slot);
bool iaa_op_wait(struct iaa_slot *slot, bool may_sleep);
int iaa_op_step(struct iaa_slot *slot, enum iaa_reason *reason);

/* request.c */
int iaa_request_check(struct acomp_req *req);
int iaa_request_end(struct acomp_req *req, int rc);
int iaa_request(struct acomp_req *req, bool compress);
int iaa_request_finish(struct iaa_slot *slot, struct acomp_req *req, int rc,
		       enum iaa_reason *reason);
void iaa_request_release(struct iaa_slot *slot);

/* async.c */
int iaa_async_init(void);
void iaa_async_exit(void);
int iaa_async_start(struct iaa_slot *slot, struct acomp_req *req);
void iaa_async_irq(struct idxd_desc *desc, enum idxd_complete_type type, bool free_desc,
		   void *ctx, u32 *status);
void iaa_async_watch(struct work_struct *work);
void iaa_async_unwatch(struct iaa_wq *iwq);

/* selfcheck.c */
int iaa_selfcheck(struct iaa_wq *iwq);

/* soft.c */
int iaa_soft_init(void);
void iaa_soft_exit(void);
int iaa_soft_request(struct acomp_req *req, bool compress, bool may_sleep);
int iaa_soft_inflate(const void *src, unsigned int slen, void *dst, unsigned int *dlen);

/* alg.c */
void iaa_algs_update(void);
void iaa_algs_exit(void);

#endif /* IAA_H */
