# System calls that the kernel runs again after a signal count once: a sleep that an ignored SIGCHLD interrupts, and a wait
# that a handler with SA_RESTART interrupts. The first child leaves a set trap flag of its own as its exit status.
	.globl _start
	.data
action:	.quad on_alarm, 0x14000000, restorer, 0	# SA_RESTORER | SA_RESTART
timer:	.quad 0, 0, 0, 100000
short:	.quad 0, 50000000
long:	.quad 0, 300000000
status:	.quad 0
	.text
_start:
	mov $57, %eax		# fork
	syscall
	test %eax, %eax
	jz child
a:	mov $35, %eax		# nanosleep
b:	lea long(%rip), %rdi
c:	xor %esi, %esi
d:	syscall
e:	nop
	call wait		# for the first child
	mov $13, %eax		# rt_sigaction
	mov $14, %edi
	lea action(%rip), %rsi
	xor %edx, %edx
	mov $8, %r10d
	syscall
	mov $57, %eax
	syscall
	test %eax, %eax
	jz sleeper
	mov $38, %eax		# setitimer
	xor %edi, %edi
	lea timer(%rip), %rsi
	xor %edx, %edx
	syscall
f:	mov $61, %eax		# wait4
g:	mov $-1, %rdi
h:	lea status(%rip), %rsi
i:	xor %edx, %edx
j:	xor %r10d, %r10d
k:	syscall
l:	mov status(%rip), %edi
m:	shr $8, %edi
n:	mov $60, %eax
o:	syscall

wait:	mov $61, %eax
	mov $-1, %rdi
	lea status(%rip), %rsi
	xor %edx, %edx
	xor %r10d, %r10d
	syscall
	ret

child:	mov $35, %eax
	lea short(%rip), %rdi
	xor %esi, %esi
	syscall
	pushf
	pop %rdi
	shr $8, %edi
	and $1, %edi
	mov $60, %eax
	syscall

sleeper: mov $35, %eax
	lea long(%rip), %rdi
	xor %esi, %esi
	syscall
	mov $9, %edi
	mov $60, %eax
	syscall

on_alarm:
p:	ret
restorer:
q:	mov $15, %eax
r:	syscall
