# A thread by clone, with instructions of its own; both threads end with exit, the main one first or last.
	.globl _start
	.bss
	.balign 16
stack:	.skip 4096
top:
	.text
_start:
a:	mov $56, %eax		# clone
b:	mov $0x50f00, %edi	# VM, FS, FILES, SIGHAND, THREAD, SYSVSEM
c:	lea top(%rip), %rsi
d:	xor %edx, %edx
e:	syscall
f:	test %eax, %eax
g:	jz k
h:	mov $60, %eax		# exit: this thread alone
i:	xor %edi, %edi
j:	syscall

k:	mov $3, %ecx
l:	dec %ecx
m:	jnz l
n:	mov $60, %eax
o:	xor %edi, %edi
p:	syscall
