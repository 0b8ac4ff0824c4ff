// Other code names an entry of each table, as if another object began there. Behind the tables
// stand numbers that lead nowhere.

#define TABLE(name, anchor, named, entries) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name \
	": .cfi_startproc\nsub $8,%rsp\n.cfi_adjust_cfa_offset 8\n" \
	"mov %edi,%eax\nlea table_of_" #name "(%rip),%rcx\nmovslq (%rcx,%rax,4),%rax\nlea " anchor \
	"(%rip),%rdx\nadd %rdx,%rax\njmp *%rax\n" \
	"1: inc %edx\n2: inc %edx\n3: inc %edx\n4: inc %edx\n5: call abort\n9:\n.cfi_endproc\n.size " \
	#name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\ntable_of_" #name ": .long " entries \
	"\n.long 0x3000000, 0x4000000, 0x5000000\n.text\n" \
	".globl names_" #name "\nnames_" #name ": .cfi_startproc\nlea table_of_" #name "+" named \
	"(%rip),%rax\nret\n.cfi_endproc\n");
TABLE(last, "1f", "16", "1b-1b, 2b-1b, 3b-1b, 4b-1b, 5b-1b")
TABLE(middle, "1f", "8", "1b-1b, 2b-1b, 3b-1b, 4b-1b, 5b-1b")
TABLE(hole, "1f", "12", "1b-1b, 2b-1b, 3b-1b, 9b-1b, 4b-1b, 5b-1b")
TABLE(own_last, "table_of_own_last", "16",
	"1b-table_of_own_last, 2b-table_of_own_last, 3b-table_of_own_last, "
	"4b-table_of_own_last, 5b-table_of_own_last")
TABLE(own_hole, "table_of_own_hole", "12",
	"1b-table_of_own_hole, 2b-table_of_own_hole, 3b-table_of_own_hole, "
	"9b-table_of_own_hole, 4b-table_of_own_hole, 5b-table_of_own_hole")

#include "callees.h"
