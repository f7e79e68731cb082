// SPDX-License-Identifier: GPL-2.0
/*
 * MOVDIR64B for guests whose processor lacks it.
 *
 * idxd does not load without MOVDIR64B, and neither software emulation nor most
 * hosts have it. This module, for the testbed only, sets the feature bit that
 * idxd looks for and carries the instruction out when it raises the
 * invalid-opcode exception, for stores to the portals of devices that idxd
 * drives. It has to be loaded before idxd, whose code is patched by the feature
 * bits as it is loaded.
 *
 * The instruction is one 64-byte write, and idxd relies on it: two CPUs may be
 * given the same portal slot. Here it is eight writes, so a lock is held around
 * them. There is one for each of a number of hashed slots: stores to different
 * slots do not wait for each other, those to one slot follow each other whole.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/io.h>
#include <linux/kdebug.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/pgtable_types.h>
#include <asm/processor.h>
#include <asm/ptrace.h>
#include <asm/trapnr.h>

#include "decode.h"

#define PORTAL_BAR 2
#define STORE_SIZE 64
#define SLOT_LOCK_BITS 6

/* The portals of one device. */
struct portal_range {
	struct list_head node;
	struct rcu_head rcu;
	struct pci_dev *pdev;
	resource_size_t start;
	resource_size_t end;
};

static LIST_HEAD(portal_ranges);
static DEFINE_MUTEX(portal_ranges_lock);
static raw_spinlock_t slot_locks[1 << SLOT_LOCK_BITS];

struct counts {
	unsigned long executed;
	unsigned long refused;
};

static DEFINE_PER_CPU(struct counts, counts);

static int get_executed(char *buffer, const struct kernel_param *kp)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(counts.executed, cpu);
	return sysfs_emit(buffer, "%lu\n", sum);
}

static int get_refused(char *buffer, const struct kernel_param *kp)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(counts.refused, cpu);
	return sysfs_emit(buffer, "%lu\n", sum);
}

static const struct kernel_param_ops executed_ops = { .get = get_executed };
static const struct kernel_param_ops refused_ops = { .get = get_refused };

module_param_cb(executed, &executed_ops, NULL, 0444);
MODULE_PARM_DESC(executed, "64-byte stores carried out");
module_param_cb(refused, &refused_ops, NULL, 0444);
MODULE_PARM_DESC(refused, "64-byte stores left to the kernel's own handling");

static void copy_registers(const struct pt_regs *regs, u64 out[16])
{
	out[0] = regs->ax;
	out[1] = regs->cx;
	out[2] = regs->dx;
	out[3] = regs->bx;
	out[4] = regs->sp;
	out[5] = regs->bp;
	out[6] = regs->si;
	out[7] = regs->di;
	out[8] = regs->r8;
	out[9] = regs->r9;
	out[10] = regs->r10;
	out[11] = regs->r11;
	out[12] = regs->r12;
	out[13] = regs->r13;
	out[14] = regs->r14;
	out[15] = regs->r15;
}

/* Is this 64-byte slot in the portals of a device that idxd drives? */
static bool is_portal(unsigned long address)
{
	struct portal_range *range;
	unsigned int level;
	phys_addr_t phys;
	pte_t *pte;

	if (!is_vmalloc_addr((void *)address))
		return false;
	pte = lookup_address(address, &level);
	if (!pte || !pte_present(*pte))
		return false;
	phys = slow_virt_to_phys((void *)address);

	list_for_each_entry_rcu(range, &portal_ranges, node) {
		if (phys >= range->start && phys + STORE_SIZE - 1 <= range->end)
			return true;
	}
	return false;
}

static void store(unsigned long to, const u64 *words)
{
	raw_spinlock_t *lock = &slot_locks[hash_long(to / STORE_SIZE, SLOT_LOCK_BITS)];
	void __iomem *portal = (void __iomem *)to;
	unsigned long flags;
	int i;

	raw_spin_lock_irqsave(lock, flags);
	for (i = 0; i < STORE_SIZE / 8; i++)
		writeq(words[i], portal + 8 * i);
	raw_spin_unlock_irqrestore(lock, flags);
}

/* Return: NULL if the instruction was carried out, else why it was not. */
static const char *carry_out(struct pt_regs *regs, const struct store64_insn *insn)
{
	u64 words[STORE_SIZE / 8];
	u64 registers[16];
	u64 from, to;

	if (insn->op != STORE64_MOVDIR64B)
		return "ENQCMD(S): its answer cannot be had from a trapped store";
	if (insn->segment)
		return "FS or GS override";

	copy_registers(regs, registers);
	from = store64_source(insn, registers, regs->ip + insn->length);
	to = store64_destination(insn, registers);
	if (to % STORE_SIZE)
		return "destination not aligned to 64 bytes";
	if (!is_portal(to))
		return "destination is no portal of a device that idxd drives";
	if (copy_from_kernel_nofault(words, (const void *)from, sizeof(words)))
		return "source cannot be read";

	store(to, words);
	return NULL;
}

static int invalid_opcode(struct notifier_block *nb, unsigned long event, void *data)
{
	const struct die_args *args = data;
	struct pt_regs *regs = args->regs;
	u8 code[STORE64_MAX_LENGTH];
	struct store64_insn insn;
	const char *why;
	size_t got;

	if (event != DIE_TRAP || args->trapnr != X86_TRAP_UD || user_mode(regs))
		return NOTIFY_DONE;

	/* The text may end before the longest instruction does. */
	for (got = sizeof(code); got; got--) {
		if (!copy_from_kernel_nofault(code, (const void *)regs->ip, got))
			break;
	}
	if (!store64_decode(code, got, &insn))
		return NOTIFY_DONE;

	why = carry_out(regs, &insn);
	if (why) {
		this_cpu_inc(counts.refused);
		pr_err_ratelimited("not carried out at %pS: %s\n", (void *)regs->ip, why);
		return NOTIFY_DONE;
	}
	this_cpu_inc(counts.executed);
	regs->ip += insn.length;
	return NOTIFY_STOP;
}

static struct notifier_block die_notifier = {
	.notifier_call = invalid_opcode,
	/* Before whoever might take the exception for a breakpoint of its own. */
	.priority = INT_MAX,
};

static void add_portals(struct pci_dev *pdev)
{
	struct portal_range *range;

	if (!(pci_resource_flags(pdev, PORTAL_BAR) & IORESOURCE_MEM))
		return;
	range = kzalloc(sizeof(*range), GFP_KERNEL);
	if (!range) {
		pci_err(pdev, "%s: no memory: its submissions will fail\n", KBUILD_MODNAME);
		return;
	}
	range->pdev = pdev;
	range->start = pci_resource_start(pdev, PORTAL_BAR);
	range->end = pci_resource_end(pdev, PORTAL_BAR);
	mutex_lock(&portal_ranges_lock);
	list_add_tail_rcu(&range->node, &portal_ranges);
	mutex_unlock(&portal_ranges_lock);
}

static void remove_portals(struct pci_dev *pdev)
{
	struct portal_range *range, *next;

	mutex_lock(&portal_ranges_lock);
	list_for_each_entry_safe(range, next, &portal_ranges, node) {
		if (range->pdev == pdev) {
			list_del_rcu(&range->node);
			kfree_rcu(range, rcu);
		}
	}
	mutex_unlock(&portal_ranges_lock);
}

static bool is_idxd(const struct device *dev)
{
	return dev->driver && !strcmp(dev->driver->name, "idxd");
}

static int pci_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct device *dev = data;

	switch (event) {
	case BUS_NOTIFY_BIND_DRIVER:
		if (is_idxd(dev))
			add_portals(to_pci_dev(dev));
		break;
	case BUS_NOTIFY_DRIVER_NOT_BOUND:
	case BUS_NOTIFY_UNBOUND_DRIVER:
		remove_portals(to_pci_dev(dev));
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block pci_notifier = {
	.notifier_call = pci_event,
};

/* What the processor itself says; the kernel's bit may have been set by hand. */
static bool has_movdir64b(void)
{
	u32 eax = 7, ebx, ecx = 0, edx;

	if (boot_cpu_data.cpuid_level < 7)
		return false;
	asm volatile("cpuid" : "+a" (eax), "=b" (ebx), "+c" (ecx), "=d" (edx));
	return ecx & BIT(28);
}

static int __init movdir64b_init(void)
{
	struct pci_dev *pdev = NULL;
	int i, ret;

	if (has_movdir64b()) {
		pr_info("the processor has MOVDIR64B: nothing to do\n");
		return 0;
	}
	for_each_pci_dev(pdev) {
		if (is_idxd(&pdev->dev)) {
			pci_err(pdev, "%s has to be loaded before idxd\n", KBUILD_MODNAME);
			pci_dev_put(pdev);
			return -EBUSY;
		}
	}
	for (i = 0; i < ARRAY_SIZE(slot_locks); i++)
		raw_spin_lock_init(&slot_locks[i]);

	ret = bus_register_notifier(&pci_bus_type, &pci_notifier);
	if (ret)
		return ret;
	ret = register_die_notifier(&die_notifier);
	if (ret) {
		bus_unregister_notifier(&pci_bus_type, &pci_notifier);
		return ret;
	}
	set_cpu_cap(&boot_cpu_data, X86_FEATURE_MOVDIR64B);
	pr_info("carrying out MOVDIR64B for a processor that lacks it\n");
	return 0;
}
module_init(movdir64b_init);

/*
 * No exit function: code that was patched for the feature stays so, and would
 * have nobody to carry the instruction out.
 */

MODULE_DESCRIPTION("MOVDIR64B in the invalid-opcode exception, for test guests");
MODULE_LICENSE("GPL");
