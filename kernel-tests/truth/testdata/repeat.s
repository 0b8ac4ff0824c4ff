# Repeated string instructions count once, a loop each time round, and a jump to itself is not a repetition.
	.globl _start
	.bss
buffer:	.skip 4096
	.text
_start:
a:	lea buffer(%rip), %rdi
b:	mov $1000, %ecx
c:	rep stosb
d:	mov $3, %ecx
e:	loop e
f:	rep stosb # rcx is 0
g:	mov $2, %ecx
h:	dec %ecx
i:	jnz h
j:	mov $60, %eax
k:	mov $4, %edi
l:	syscall
