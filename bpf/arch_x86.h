/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What is of x86-64 in the C of a hit: registers, conditions, where a return address and a signal
 * frame lie, system calls. Another architecture is another header with the same names. Package
 * loader/arch has what Go knows of it.
 */
#ifndef WPPTRACE_ARCH_X86_H
#define WPPTRACE_ARCH_X86_H

#include <linux/types.h>

/* struct pt_regs as the kernel lays it out. */
struct registers {
	__u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	__u64 orig_rax, rip, cs, flags, rsp, ss;
};

/* Members of struct registers. */
#define REG_PC rip
#define REG_SP rsp
#define REG_FP rbp
#define REG_FLAGS flags
#define REG_SYSCALL orig_rax
#define REG_ARG1 rdi
#define REG_ARG2 rsi
#define REG_ARG3 rdx
#define REG_ARG4 r10

/* Hardware numbers, by which sites name registers. */
enum { NUMBER_SP = 4, NUMBER_FP = 5 };

/* EACH_REGISTER(r) is r(number, member of struct registers) for all hardware numbers. */
#define EACH_REGISTER(r)                                                                           \
	r(0, rax) r(1, rcx) r(2, rdx) r(3, rbx) r(4, rsp) r(5, rbp) r(6, rsi) r(7, rdi) r(8, r8)       \
		r(9, r9) r(10, r10) r(11, r11) r(12, r12) r(13, r13) r(14, r14) r(15, r15)

/* An activation with this CFA has its return address there. */
#define RETURN_ADDRESS_AT(cfa) ((cfa) - 8)

/* A signal frame keeps what it interrupted so many bytes above the handler's CFA, in this order:
 * uc_mcontext.gregs. */
#define SIGNAL_FRAME_REGISTERS 40
enum signal_frame {
	FRAME_R8,
	FRAME_R9,
	FRAME_R10,
	FRAME_R11,
	FRAME_R12,
	FRAME_R13,
	FRAME_R14,
	FRAME_R15,
	FRAME_RDI,
	FRAME_RSI,
	FRAME_RBP,
	FRAME_RBX,
	FRAME_RDX,
	FRAME_RAX,
	FRAME_RCX,
	FRAME_SP,
	FRAME_PC,
	FRAME_REGISTERS
};

/* Registers' hardware numbers by their places in a signal frame. */
static const __u8 frame_number[FRAME_PC] = {8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4};

/* returns_from_signal reports whether this is the code that signal handlers return to:
 * mov $15, %rax (or %eax); syscall. */
static __always_inline int returns_from_signal(__u64 code)
{
	return code == 0x0f0000000fc0c748ULL || (code & 0xffffffffffffffULL) == 0x050f0000000fb8ULL;
}

/* System calls, from asm/unistd.h. */
enum {
	SYSCALL_MMAP = 9,
	SYSCALL_MUNMAP = 11,
	SYSCALL_EXECVE = 59,
	SYSCALL_EXIT = 60,
	SYSCALL_EXIT_GROUP = 231,
	SYSCALL_EXECVEAT = 322
};

/* The kernel's function of a system call. */
#define SYSCALL_FUNCTION(name) "__x64_sys_" name

/* condition is 1 if a conditional jump with this condition code is taken under these flags, else
 * 0. It has no branches: after the kernel's entry few of them are predicted. */
static __always_inline __u64 condition(__u8 code, __u64 flags)
{
	__u64 cf = flags & 1, pf = flags >> 2 & 1, zf = flags >> 6 & 1, sf = flags >> 7 & 1;
	__u64 of = flags >> 11 & 1, less = sf ^ of;
	__u64 all =
		of | cf << 1 | zf << 2 | (cf | zf) << 3 | sf << 4 | pf << 5 | less << 6 | (zf | less) << 7;

	return (all >> (code >> 1) ^ code) & 1;
}

#endif
