// SPDX-License-Identifier: GPL-2.0
/* Building descriptors and reading completion records. */
#include "hw.h"

#define OP_FLAGS (IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CC)

/* The PASID word is idxd's: it fills it in when it hands the descriptor out. */
static void start(struct iax_hw_desc *desc, u8 opcode, u32 flags, u64 completion)
{
	desc->opcode = opcode;
	desc->flags = flags;
	desc->completion_addr = completion;
	desc->int_handle = 0;
	desc->filter_flags = 0;
	desc->num_inputs = 0;
}

/**
 * iaa_hw_compress() - describe a compression
 * @desc: the descriptor to fill
 * @job: what to compress; its AECS holds the tables and the block header
 */
void iaa_hw_compress(struct iax_hw_desc *desc, const struct iaa_job *job)
{
	start(desc, IAX_OPCODE_COMPRESS, OP_FLAGS | IAA_OP_READ_AECS, job->completion);
	desc->compr_flags = IAA_COMP_FLUSH | IAA_COMP_APPEND_EOB;
	desc->src1_addr = job->src;
	desc->src1_size = job->src_len;
	desc->src2_addr = job->aecs;
	desc->src2_size = sizeof(struct iaa_aecs_comp);
	desc->dst_addr = job->dst;
	desc->max_dst_size = job->dst_len;
}

static void decompress(struct iax_hw_desc *desc, u16 extra, u64 completion)
{
	start(desc, IAX_OPCODE_DECOMPRESS, OP_FLAGS, completion);
	desc->decompr_flags = IAA_DECOMP_ENABLE | IAA_DECOMP_FLUSH | IAA_DECOMP_CHECK_EOB |
			      IAA_DECOMP_STOP_EOB | IAA_DECOMP_FINAL_EOB | extra;
	desc->src2_addr = 0;
	desc->src2_size = 0;
}

/**
 * iaa_hw_decompress() - describe the decompression of a whole stream
 * @desc: the descriptor to fill
 * @job: what to decompress
 *
 * It ends with the final block; without that flag the first block's end would do,
 * and a stream of several be cut off with success.
 */
void iaa_hw_decompress(struct iax_hw_desc *desc, const struct iaa_job *job)
{
	decompress(desc, 0, job->completion);
	desc->src1_addr = job->src;
	desc->src1_size = job->src_len;
	desc->dst_addr = job->dst;
	desc->max_dst_size = job->dst_len;
}

/**
 * iaa_hw_verify() - describe reading a compression's output back
 * @desc: the descriptor to fill
 * @job: the compression that was done
 * @out_len: bytes it produced
 *
 * Nothing is written but the completion record, whose CRC must be the one of the
 * compression. The device wants a destination nonetheless, large enough for the
 * output that it leaves out, and gets the source.
 */
void iaa_hw_verify(struct iax_hw_desc *desc, const struct iaa_job *job, u32 out_len)
{
	decompress(desc, IAA_DECOMP_SUPPRESS, job->completion);
	desc->src1_addr = job->dst;
	desc->src1_size = out_len;
	desc->dst_addr = job->src;
	desc->max_dst_size = job->src_len;
}

/**
 * iaa_hw_verdict() - what a completion record says
 * @compress: it is a compression's
 * @status: its status byte
 * @error_code: its error code
 */
enum iaa_verdict iaa_hw_verdict(bool compress, u8 status, u8 error_code)
{
	switch (status) {
	case IAA_STATUS_SUCCESS:
		return IAA_V_OK;
	case IAA_STATUS_ANALYTICS:
		if (!compress)
			return IAA_V_STREAM;
		return error_code == IAA_ERROR_OVERFLOW ? IAA_V_NO_SPACE : IAA_V_ERROR;
	case IAA_STATUS_OVERFLOW:
		return IAA_V_TOO_SMALL;
	case IAA_STATUS_WATCHDOG:
		return IAA_V_SLOW;
	default:
		return IAA_V_ERROR;
	}
}
