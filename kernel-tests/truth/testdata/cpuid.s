# Some hypervisors execute cpuid and swallow the trap behind it.
	.globl _start
	.text
_start:
a:	xor %eax, %eax
b:	cpuid
c:	mov $2, %ecx
d:	dec %ecx
e:	jnz d
f:	xor %eax, %eax
g:	cpuid
h:	jmp j
i:	nop
j:	xor %eax, %eax
k:	cpuid
l:	cpuid
m:	mov $60, %eax
n:	mov $5, %edi
o:	syscall
