// Transactions and sequences as compilers do not make them.
#include "beginend.h"

__asm__(BEGIN(equal) "xbegin 1f\ncmp $-1,%eax\nje 2f\n"
	"1: call outside\nret\n"
	"2: call inside\nxend\nret\n" END(equal)
	BEGIN(unequal) "xbegin 1f\n"
	"1: cmp $-1,%eax\njne 2f\ncall inside\nxabort $3\ncall outside\n"
	"2: call outside\nret\n" END(unequal)
	BEGIN(other) "xbegin 1f\n1: cmp $-2,%eax\njne 2f\nret\n2: call unsure\nxend\nret\n" END(other)
	BEGIN(gives) "xbegin 1f\n1: cmp $-1,%eax\njne 2f\ncall dies\n2: ret\n" END(gives) BEGIN(dies)
	"ud2\n" END(dies)
	BEGIN(nests) "xbegin 1f\n"
	"1: cmp $-1,%eax\njne 2f\nxbegin 3f\n"
	"3: cmp $-1,%eax\njne 4f\nxend\n"
	"4: call inner\nxend\n"
	"2: ret\n" END(nests)
	BEGIN(joins) "xbegin 1f\nmov $-1,%eax\njmp 1f\n"
	"1: mov %edi,%ecx\ncmp $-1,%eax\njne 2f\ncall inside\nxend\nret\n"
	"2: call outside\nret\n" END(joins)
	BEGIN(inner) "mov $4,%eax\nret\n" END(inner)
	BEGIN(inside) "mov $1,%eax\nret\n" END(inside) BEGIN(outside) "mov $2,%eax\nret\n" END(outside)
	BEGIN(unsure) "mov $3,%eax\nret\n" END(unsure)
	BEGIN(starts) "mov %edi,%eax\n1: add $1,%eax\n2: ret\n" END(starts) BEGIN(resumes)
	"mov %edi,%eax\n"
	"4: add $2,%eax\nret\n" END(resumes)
	".section __rseq_cs,\"aw\"\n.p2align 5\n.long 0, 0\n.quad 1b, 2b-1b, 4b\n.text\n");
int nests(int), joins(int), equal(int), unequal(int), other(int), gives(int),
	starts(int), resumes(int);
int main(int c, char **v) {
	return nests(c) + joins(c) + equal(c) + unequal(c) + other(c) + gives(c) + starts(c) +
		resumes(c);
}
