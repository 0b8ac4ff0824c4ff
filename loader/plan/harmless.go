package plan

import (
	"slices"
	"strings"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
)

// Imports says what is known of the functions that a program imports.
type Imports struct {
	distrust  bool
	allocates bool // the C library gets its memory from the program
}

// ImportsOf finds out what is known of a program's imports. With distrust no function is taken for
// harmless by its name: it may lie in another image that is traced.
func ImportsOf(program *cfg.Program, distrust bool) Imports {
	return Imports{distrust: distrust, allocates: hasAllocator(program)}
}

// IsHarmless reports whether an imported function of that name is known to neither call back, nor
// throw, nor return twice, nor to be traced.
func (m Imports) IsHarmless(name string) bool {
	return !m.distrust && (harmless[name] || allocating[name] && !m.allocates)
}

// hasAllocator reports whether the C library gets its memory from the program, or from an allocator
// that may have hooks in it, by its name (tcmalloc, jemalloc).
func hasAllocator(program *cfg.Program) bool {
	isAllocator := func(library string) bool { return strings.Contains(library, "malloc") }
	return slices.ContainsFunc(program.Image.Needed, isAllocator) ||
		slices.ContainsFunc(program.Image.Symbols(), func(s image.Symbol) bool {
			return s.Dynamic && slices.Contains([]string{"malloc", "calloc", "realloc", "free"},
				s.Name)
		})
}

// harmless are C library functions that neither call back into the program, nor throw, nor jump,
// nor raise a signal: functions of memory and strings whose names nobody else uses.
var harmless = set(
	"memcpy", "memmove", "memset", "memcmp", "memchr", "memrchr", "rawmemchr", "mempcpy", "memmem",
	"__memcpy_chk", "__memmove_chk", "__memset_chk", "__mempcpy_chk", "bcmp",
	"strlen", "strnlen", "strcmp", "strncmp", "strcasecmp", "strncasecmp", "strchr", "strrchr",
	"strchrnul", "strstr", "strcpy", "strncpy", "stpcpy", "strcat", "strncat",
	"strspn", "strcspn", "strpbrk", "strtok", "strtok_r", "strsep", "__strcpy_chk", "__strcat_chk",
	"__stpcpy_chk", "__strncpy_chk", "__strncat_chk",
	"strtol", "strtoul", "strtoll", "strtoull", "strtod", "atoi", "atol",
	"isalnum", "isalpha", "isdigit", "isspace", "isupper", "islower", "toupper", "tolower",
	"__ctype_b_loc", "__ctype_tolower_loc", "__ctype_toupper_loc", "__ctype_get_mb_cur_max",
	"wcslen", "wmemchr", "wmemcpy", "wmemset", "wcschr", "iswalnum", "iswprint", "towupper",
	"towlower", "mbsinit",
	"__errno_location", "getenv", "clock_gettime", "gettimeofday", "getpid", "pthread_self",
)

// allocating are such functions, too, but for the allocator, which they use, be it for a conversion
// of characters that they load.
var allocating = set(
	"malloc", "calloc", "realloc", "free", "strdup", "strndup", "strcoll", "strxfrm",
	"mbrtowc", "mbrlen", "mbstowcs", "mbsrtowcs", "wcrtomb", "btowc",
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}
