# Routines for the charts of a plan. Built with
#	gcc -g -nostdlib -static -Wl,-Ttext=0x401000 -Wl,--build-id=none routines.s
# their addresses and lines are the same on every machine.
	.text
	.globl	_start
	.type	_start, @function
_start:
	.cfi_startproc
	lea	text(%rip), %rdi
	call	letters
	mov	%eax, %edi
	call	*pointers(%rip)
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	hlt
	.cfi_endproc
	.size	_start, .-_start

# int letters(const char *s) counts the letters of a text:
#	int n = 0;
#	if (s)
#		for (; *s; s++)
#			if (*s >= 'a')
#				n++;
#	return n;
	.globl	letters
	.type	letters, @function
letters:
	.cfi_startproc
	xor	%eax, %eax
	test	%rdi, %rdi
	je	3f
1:	movzbl	(%rdi), %ecx
	test	%cl, %cl
	je	3f
	cmp	$'a', %cl
	jb	2f
	inc	%eax
2:	inc	%rdi
	jmp	1b
3:	ret
	.cfi_endproc
	.size	letters, .-letters

# int pick(int n) goes by a table.
	.globl	pick
	.type	pick, @function
pick:
	.cfi_startproc
	mov	$7, %eax
	cmp	$2, %edi
	ja	4f
	mov	%edi, %edi
	lea	table(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rcx
	add	%rdx, %rcx
	jmp	*%rcx
.Lcase1:	mov	$1, %eax
	ret
.Lcase2:	mov	$2, %eax
	ret
.Lcase3:	mov	$3, %eax
4:	ret
	.cfi_endproc
	.size	pick, .-pick

# void bits(int n) asks three times for the same register.
	.globl	bits
	.type	bits, @function
bits:
	.cfi_startproc
	test	$1, %dil
	je	1f
	mov	%eax, %ecx
1:	test	$2, %dil
	je	2f
	mov	%eax, %ecx
2:	cmp	$4, %edi
	jae	3f
	mov	%eax, %edx
3:	ret
	.cfi_endproc
	.size	bits, .-bits

# int sum(int n, const char *from, const char *to) has a loop whose rounds are known before it begins.
	.globl	sum
	.type	sum, @function
sum:
	.cfi_startproc
	test	%edi, %edi
	je	2f
1:	movzbl	(%rsi), %eax
	add	$1, %rsi
	xor	%eax, %ecx
	cmp	%rdx, %rsi
	jne	1b
2:	mov	%ecx, %eax
	ret
	.cfi_endproc
	.size	sum, .-sum

	.section .rodata
	.align	4
table:	.long	.Lcase1-table, .Lcase2-table, .Lcase3-table
text:	.string	"six blocks"
	.section .data.rel.ro, "aw"
	.align	8
pointers:
	.quad	pick, bits, sum
