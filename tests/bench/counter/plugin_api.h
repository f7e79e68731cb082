// SPDX-License-Identifier: GPL-2.0
/*
 * The few functions of QEMU's interface for TCG plugins, version 7, that the counter uses, in words
 * of our own: no package ships the header.
 */
#ifndef IAA_BENCH_PLUGIN_API_H
#define IAA_BENCH_PLUGIN_API_H

#include <cstddef>
#include <cstdint>

extern "C" {

inline constexpr int kPluginApiVersion = 7;

using PluginId = std::uint64_t;

struct PluginTb;
struct PluginInsn;
struct PluginScoreboard;

/* A 64-bit variable in a scoreboard, of which every emulated CPU has its own. */
struct PluginU64 {
    PluginScoreboard* scoreboard;
    std::size_t offset;
};

/* Which of the CPU's registers a callback uses. */
enum PluginRegisters : int { kPluginNoRegisters = 0 };

/* When a conditional callback is called: the variable is not equal to the constant. */
enum PluginCondition : int { kPluginNotEqual = 3 };

using PluginTbCallback = void (*)(PluginTb* tb, void* data);
using PluginInsnCallback = void (*)(unsigned int vcpu, void* data);

void qemu_plugin_register_vcpu_tb_trans_cb(PluginId id, PluginTbCallback callback, void* data);
void qemu_plugin_register_vcpu_insn_exec_cb(PluginInsn* insn, PluginInsnCallback callback,
                                            PluginRegisters registers, void* data);
void qemu_plugin_register_vcpu_insn_exec_cond_cb(PluginInsn* insn, PluginInsnCallback callback,
                                                 PluginRegisters registers,
                                                 PluginCondition condition, PluginU64 variable,
                                                 std::uint64_t constant, void* data);

std::size_t qemu_plugin_tb_n_insns(const PluginTb* tb);
PluginInsn* qemu_plugin_tb_get_insn(const PluginTb* tb, std::size_t index);
std::size_t qemu_plugin_insn_data(const PluginInsn* insn, void* to, std::size_t length);
std::size_t qemu_plugin_insn_size(const PluginInsn* insn);
std::uint64_t qemu_plugin_insn_vaddr(const PluginInsn* insn);

PluginScoreboard* qemu_plugin_scoreboard_new(std::size_t element_size);
void qemu_plugin_u64_set(PluginU64 variable, unsigned int vcpu, std::uint64_t value);
}

#endif
