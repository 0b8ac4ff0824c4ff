package sweep

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// IsNoReturnImport says whether a library function of that name never returns: its header declares
// it so.
func IsNoReturnImport(name string) bool {
	switch name {
	case "__assert", "g_assertion_message_expr":
		return true
	}
	return isReservedNoReturn(name) || isSanitizersEnd(name) || isStandardNoReturn(name)
}

// IsNoReturnSymbol says whether a function of that name, which the image has itself, never returns.
// One with a name of the C library's is the program's own where that is another image, or where
// the name is static; its code decides.
func (f *File) IsNoReturnSymbol(name string, addr uint64) bool {
	if isReservedNoReturn(name) {
		return true
	}
	if !isStandardNoReturn(name) || f.importsLibc {
		return false
	}
	s, _ := f.symbolAt(addr)
	return !s.Local
}

// isStandardNoReturn says whether a function of the C library of that name never returns. A program
// may have one of its own, as tests have that go on behind what they expect to fail.
func isStandardNoReturn(name string) bool {
	switch name {
	case "abort", "exit", "quick_exit", "pthread_exit", "thrd_exit", "longjmp", "siglongjmp",
		"__stack_chk_fail", "__stack_chk_fail_local", "__fortify_fail", "__chk_fail",
		"__assert_fail", "__assert_perror_fail", "__libc_fatal":
		return true
	}
	return false
}

// isReservedNoReturn says whether a function of that name never returns, though its code need not
// show: the names are those that are the C and C++ libraries' own, which no program can use
// otherwise.
func isReservedNoReturn(name string) bool {
	switch name {
	case "_exit", "_Exit", "_longjmp", "__longjmp", "__longjmp_chk", "__libc_siglongjmp",
		"__libc_longjmp", "__libc_start_main", "__pthread_exit",
		"_Unwind_Resume", "_Unwind_RaiseException_Resume",
		"__cxa_throw", "__cxa_rethrow", "__cxa_bad_cast", "__cxa_bad_typeid",
		"__cxa_call_unexpected",
		"__cxa_call_terminate", "__cxa_throw_bad_array_new_length", "__cxa_throw_bad_array_length",
		"__cxa_pure_virtual", "__cxa_deleted_virtual", "_ZSt9terminatev", "_ZSt10unexpectedv":
		return true
	}
	if strings.HasPrefix(name, "_ZSt17rethrow_exception") {
		return true
	}
	for _, of := range []string{"_ZSt", "_ZNSt3__1", "_ZNKSt3__1"} { // libstdc++, libc++
		if strings.HasPrefix(name, of) && isThrower(name) {
			return true
		}
	}
	return false
}

// isSanitizersEnd says whether code that was compiled for a sanitizer calls the function of that
// name to report an error that it cannot go on after: the sanitizer ends the process, whatever its
// options say.
func isSanitizersEnd(name string) bool {
	for _, report := range [...]string{"__asan_report_load", "__asan_report_store",
		"__asan_report_exp_"} {
		if strings.HasPrefix(name, report) {
			return !strings.HasSuffix(name, "_noabort")
		}
	}
	of, ok := strings.CutPrefix(name, "__ubsan_handle_")
	return ok && (strings.HasSuffix(of, "_abort") || of == "builtin_unreachable" ||
		of == "missing_return")
}

// isThrower says whether a mangled name is that of a function __throw_...: not of one that has a
// type of such a name for a parameter.
func isThrower(name string) bool {
	const mark = "__throw_"
	if !strings.Contains(name, mark) {
		return false
	}
	plain, err := demangle.ToString(name, demangle.NoParams, demangle.NoTemplateParams,
		demangle.MaxLength(12))
	plain, _, _ = strings.Cut(plain, "[") // of the ABI
	return err == nil && strings.HasPrefix(plain[strings.LastIndexByte(plain, ':')+1:], mark)
}
