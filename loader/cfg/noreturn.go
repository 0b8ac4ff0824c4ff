package cfg

import "strings"

// isNoReturnImport says whether a library function of that name never returns: its header declares
// it so.
func isNoReturnImport(name string) bool {
	switch name {
	case "err", "errx", "verr", "verrx", "__assert", "g_assertion_message_expr":
		return true
	}
	return isNoReturnSymbol(name)
}

// isNoReturnSymbol says whether a function of that name never returns, though its code need not
// tell: the names are those that the C and C++ standards and the C library reserve, which a program
// cannot use otherwise.
func isNoReturnSymbol(name string) bool {
	switch name {
	case "abort", "exit", "_exit", "_Exit", "quick_exit", "pthread_exit", "thrd_exit", "longjmp", "_longjmp", "siglongjmp", "__longjmp", "__longjmp_chk", "__libc_siglongjmp",
		"__libc_longjmp", "__stack_chk_fail", "__stack_chk_fail_local", "__fortify_fail", "__chk_fail",
		"__assert_fail", "__assert_perror_fail", "__libc_fatal", "__libc_start_main", "__pthread_exit",
		"_Unwind_Resume", "_Unwind_RaiseException_Resume",
		"__cxa_throw", "__cxa_rethrow", "__cxa_bad_cast", "__cxa_bad_typeid", "__cxa_call_unexpected",
		"__cxa_call_terminate", "__cxa_throw_bad_array_new_length", "__cxa_throw_bad_array_length",
		"__cxa_pure_virtual", "__cxa_deleted_virtual", "_ZSt9terminatev", "_ZSt10unexpectedv", "rust_panic":
		return true
	}
	return strings.HasPrefix(name, "_ZSt") && strings.Contains(name, "__throw_")
}
