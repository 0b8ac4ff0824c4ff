# A signal that the thread sends itself, and a fault whose handler moves the thread on.
	.globl _start
	.data
action:	.quad on_usr1, 0x04000000, restorer, 0	# SA_RESTORER
repair:	.quad on_segv, 0x04000004, restorer, 0	# SA_RESTORER | SA_SIGINFO
	.text
_start:
	call install
a:	mov $39, %eax		# getpid
b:	syscall
c:	mov %eax, %edi
d:	mov $10, %esi
e:	mov $62, %eax		# kill
f:	syscall
g:	nop
h:	xor %eax, %eax
i:	mov (%rax), %rax	# faults: it does not complete
j:	nop			# and this is skipped
k:	nop
l:	mov $60, %eax
m:	xor %edi, %edi
n:	syscall

on_usr1:
p:	nop
q:	ret
restorer:
r:	mov $15, %eax		# rt_sigreturn
s:	syscall

on_segv:
t:	lea k(%rip), %rax
u:	mov %rax, 168(%rdx)	# rip in the ucontext
v:	ret

install:
	mov $13, %eax		# rt_sigaction
	mov $10, %edi
	lea action(%rip), %rsi
	xor %edx, %edx
	mov $8, %r10d
	syscall
	mov $13, %eax
	mov $11, %edi
	lea repair(%rip), %rsi
	syscall
	ret
