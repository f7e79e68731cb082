/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the device is told and what it answers: tables, descriptors, verdicts.
 * No kernel calls; the unit tests compile the same file on the host. All of it is
 * inline: it is a handful of stores, between which calls would be felt.
 */
#ifndef IAA_HW_H
#define IAA_HW_H

#include "pure.h"

#define IAA_AECS_ALIGN		32
#define IAA_LL_SYMBOLS		286
#define IAA_D_SYMBOLS		30
#define IAA_ACCUM_BYTES		256

/* The largest distance that the device's 4 KB history reaches. */
#define IAA_WINDOW_BITS		12

/* (De)compression flags of a descriptor. */
#define IAA_COMP_FLUSH		0x0002
#define IAA_COMP_APPEND_EOB	0x0004
#define IAA_DECOMP_ENABLE	0x0001
#define IAA_DECOMP_FLUSH	0x0002
#define IAA_DECOMP_CHECK_EOB	0x0004
#define IAA_DECOMP_STOP_EOB	0x0008
#define IAA_DECOMP_FINAL_EOB	0x0010
#define IAA_DECOMP_SUPPRESS	0x0200

/* The second source of a descriptor is an AECS to be read. */
#define IAA_OP_READ_AECS	0x10000

/* Status and error codes that are told apart here. */
#define IAA_STATUS_SUCCESS	0x01
#define IAA_STATUS_ANALYTICS	0x0a
#define IAA_STATUS_OVERFLOW	0x0b
#define IAA_STATUS_WATCHDOG	0x24
#define IAA_ERROR_OVERFLOW	0x19

/**
 * struct iaa_aecs_comp - engine state that a compression starts from
 * @crc: CRC-32 of what was compressed before
 * @xor_checksum: XOR checksum of the same
 * @reserved0: zero
 * @accum_bits: valid bits in @accum
 * @reserved1: zero
 * @accum: output that precedes what the engine produces, first bit lowest
 * @ll_codes: literal/length codes, iaa_code_entry() each
 * @reserved2: zero
 * @d_codes: distance codes, likewise
 * @reserved3: zero
 */
struct iaa_aecs_comp {
	u32 crc;
	u32 xor_checksum;
	u32 reserved0[5];
	u16 accum_bits;
	u16 reserved1;
	u8 accum[IAA_ACCUM_BYTES];
	u32 ll_codes[IAA_LL_SYMBOLS];
	u32 reserved2[2];
	u32 d_codes[IAA_D_SYMBOLS];
	u32 reserved3[2];
};

static_assert(offsetof(struct iaa_aecs_comp, accum_bits) == 28, "AECS layout");
static_assert(offsetof(struct iaa_aecs_comp, accum) == 32, "AECS layout");
static_assert(offsetof(struct iaa_aecs_comp, ll_codes) == 288, "AECS layout");
static_assert(offsetof(struct iaa_aecs_comp, d_codes) == 1440, "AECS layout");
static_assert(sizeof(struct iaa_aecs_comp) == 1568, "AECS layout");

/**
 * iaa_code_entry() - a Huffman code in the form that the tables hold
 * @length: bits of the code, 0 where the symbol has none
 * @code: the code, its first transmitted bit highest
 */
static inline u32 iaa_code_entry(u32 length, u32 code)
{
	return length << 15 | code;
}

/**
 * enum iaa_verdict - what a completion record means for a request
 * @IAA_V_OK: the output is there
 * @IAA_V_NO_SPACE: what was compressed does not fit, which is the caller's answer
 * @IAA_V_TOO_SMALL: the destination is too small, says the device where it need not be
 * @IAA_V_STREAM: the device cannot take this stream
 * @IAA_V_SLOW: the device's own watchdog ended the operation
 * @IAA_V_ERROR: anything else
 */
enum iaa_verdict {
	IAA_V_OK,
	IAA_V_NO_SPACE,
	IAA_V_TOO_SMALL,
	IAA_V_STREAM,
	IAA_V_SLOW,
	IAA_V_ERROR,
};

/**
 * struct iaa_job - one operation, in the device's terms
 * @src: DMA address of the input
 * @dst: DMA address of the output
 * @aecs: DMA address of the compression AECS; unused for decompression
 * @completion: DMA address of the completion record
 * @src_len: bytes of input
 * @dst_len: bytes the output may take
 */
struct iaa_job {
	u64 src;
	u64 dst;
	u64 aecs;
	u64 completion;
	u32 src_len;
	u32 dst_len;
};

#define IAA_OP_FLAGS (IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CC)

/* The PASID word is idxd's: it fills it in when it hands the descriptor out. */
static inline void iaa_hw_start(struct iax_hw_desc *desc, u8 opcode, u32 flags, u64 completion)
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
static inline void iaa_hw_compress(struct iax_hw_desc *desc, const struct iaa_job *job)
{
	iaa_hw_start(desc, IAX_OPCODE_COMPRESS, IAA_OP_FLAGS | IAA_OP_READ_AECS, job->completion);
	desc->compr_flags = IAA_COMP_FLUSH | IAA_COMP_APPEND_EOB;
	desc->src1_addr = job->src;
	desc->src1_size = job->src_len;
	desc->src2_addr = job->aecs;
	desc->src2_size = sizeof(struct iaa_aecs_comp);
	desc->dst_addr = job->dst;
	desc->max_dst_size = job->dst_len;
}

static inline void iaa_hw_inflate(struct iax_hw_desc *desc, u16 extra, u64 completion)
{
	iaa_hw_start(desc, IAX_OPCODE_DECOMPRESS, IAA_OP_FLAGS, completion);
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
static inline void iaa_hw_decompress(struct iax_hw_desc *desc, const struct iaa_job *job)
{
	iaa_hw_inflate(desc, 0, job->completion);
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
static inline void iaa_hw_verify(struct iax_hw_desc *desc, const struct iaa_job *job, u32 out_len)
{
	iaa_hw_inflate(desc, IAA_DECOMP_SUPPRESS, job->completion);
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
static inline enum iaa_verdict iaa_hw_verdict(bool compress, u8 status, u8 error_code)
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

#endif /* IAA_HW_H */
