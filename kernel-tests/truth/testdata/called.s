# Two calls, one through a register.
	.globl _start
	.text
_start:
a:	push %rbx
b:	call f
c:	call *%rdx
d:	mov $60, %eax		# exit
e:	syscall

f:	lea f(%rip), %rdx
g:	ret
