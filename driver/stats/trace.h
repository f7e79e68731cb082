/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints: what is submitted, how it ends, what software does, how WQs fare. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM iaa_crypto

#if !defined(IAA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define IAA_TRACE_H

#include <linux/tracepoint.h>

#include "../iaa.h"

TRACE_EVENT(iaa_submit,
	    TP_PROTO(const struct iaa_slot *slot),
	    TP_ARGS(slot),
	    TP_STRUCT__entry(__string(wq, dev_name(idxd_wq_dev(slot->iwq->wq)))
			     __field(unsigned int, desc)
			     __field(bool, compress)
			     __field(bool, verify)
			     __string(mode, iaa_sync_mode_name(slot->mode))
			     __field(u32, src_len)
			     __field(u32, dst_len)),
	    TP_fast_assign(__assign_str(wq);
			   __entry->desc = slot->index;
			   __entry->compress = slot->compress;
			   __entry->verify = slot->stage != IAA_STAGE_RUN;
			   __assign_str(mode);
			   __entry->src_len = slot->src.len;
			   __entry->dst_len = slot->dst.len;),
	    TP_printk("%s desc=%u %s%s %s src_len=%u dst_len=%u", __get_str(wq), __entry->desc,
		      __entry->compress ? "compress" : "decompress",
		      __entry->verify ? " verify" : "",
		      __get_str(mode), __entry->src_len, __entry->dst_len)
);

TRACE_EVENT(iaa_complete,
	    TP_PROTO(const struct iaa_slot *slot, int rc),
	    TP_ARGS(slot, rc),
	    TP_STRUCT__entry(__string(wq, dev_name(idxd_wq_dev(slot->iwq->wq)))
			     __field(unsigned int, desc)
			     __field(bool, compress)
			     __field(int, rc)
			     __field(u8, status)
			     __field(u8, error)
			     __field(u32, out_len)),
	    TP_fast_assign(__assign_str(wq);
			   __entry->desc = slot->index;
			   __entry->compress = slot->compress;
			   __entry->rc = rc;
			   __entry->status = idxd_desc_iax_completion(slot->desc)->status;
			   __entry->error = idxd_desc_iax_completion(slot->desc)->error_code;
			   __entry->out_len = rc ? 0 : slot->out_len;),
	    TP_printk("%s desc=%u %s rc=%d status=%#x error=%#x out_len=%u", __get_str(wq),
		      __entry->desc, __entry->compress ? "compress" : "decompress", __entry->rc,
		      __entry->status, __entry->error, __entry->out_len)
);

TRACE_EVENT(iaa_fallback,
	    TP_PROTO(bool compress, enum iaa_reason reason),
	    TP_ARGS(compress, reason),
	    TP_STRUCT__entry(__field(bool, compress)
			     __string(reason, iaa_reason_name(reason))),
	    TP_fast_assign(__entry->compress = compress;
			   __assign_str(reason);),
	    TP_printk("%s %s", __entry->compress ? "compress" : "decompress", __get_str(reason))
);

TRACE_EVENT(iaa_wq_state,
	    TP_PROTO(struct iaa_wq *iwq, const char *state),
	    TP_ARGS(iwq, state),
	    TP_STRUCT__entry(__string(wq, dev_name(idxd_wq_dev(iwq->wq)))
			     __string(state, state)),
	    TP_fast_assign(__assign_str(wq);
			   __assign_str(state);),
	    TP_printk("%s %s", __get_str(wq), __get_str(state))
);

#endif /* IAA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
