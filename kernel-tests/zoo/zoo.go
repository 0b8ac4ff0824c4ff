package zoo

import (
	"slices"
	"strings"
)

// A Program is one program of the zoo.
type Program struct {
	Name string   // also the base name of its source
	File string   // under src
	Args []string // for a run of at most about 60,000 of its own instructions
	Soak []string // arguments for a long run; nil: as Args
	Exit int      // the exit status: 128 and the number of the signal that ends it, if one does
	Tags Tag
}

// A Tag says what a test must know about a program.
type Tag uint32

// The tags.
const (
	Threads Tag = 1 << iota // has several threads
	// handlers interrupt it at any instruction: another instruction in each run
	Timer
	Fault      // an instruction faults; a handler repairs it or jumps away
	Signals    // has signal handlers
	Jumps      // longjmp or siglongjmp
	Exceptions // C++ exceptions
	Coroutine  // switches stacks
	Forks      // has child processes, which are not traced
	Execs      // execs itself
	Vector     // AVX2, where the machine has it
	// is not built statically: the C library takes other ways when threads meet, or would be what
	// several signals interrupt at once
	NoStatic
	// is not built with -fno-plt: library calls through the global offset table are not announced,
	// and a raised handler that faults before its first event is not seen
	Announced
	EarlyCode    // runs code of its own before its entry point
	KillsThreads // ends while its threads live
	GNU          // is GNU C, which gcc alone compiles
	// executes half a million instructions and more where its libraries' count, static or shared:
	// for the whole matrix alone
	Long
	// executes as many wherever it is built, for what its libraries do has to be stepped through
	Longest
)

// Has says whether the program has all of these tags.
func (p Program) Has(tags Tag) bool { return p.Tags&tags == tags }

// Cxx says whether the program is C++, not C.
func (p Program) Cxx() bool { return strings.HasSuffix(p.File, ".cc") }

// Env is the environment that every program of the zoo is run in, so that the C library's start-up
// code is always the same.
func Env() []string { return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"} }

// Named returns the program of that name, which must be one of Programs.
func Named(name string) Program {
	list := Programs()
	return list[slices.IndexFunc(list, func(p Program) bool { return p.Name == name })]
}

// Programs lists the zoo.
func Programs() []Program {
	programs := []Program{
		{File: "abort_caught.c", Exit: 250, Tags: Signals | Jumps | Fault},
		{File: "alloca.c"},
		{File: "allocator.c"},
		{File: "atexit.c", Exit: 33},
		{File: "avx.c", Tags: Vector},
		{File: "beneath.c", Exit: 5, Tags: NoStatic},
		{File: "builtin_jump.c", Tags: Jumps},
		{File: "called_faults.c", Exit: 139, Tags: Signals | Jumps | NoStatic},
		{File: "calculator.c", Tags: Jumps},
		{File: "callback_faults.c", Exit: 5, Tags: Signals | Jumps | NoStatic | Announced},
		{File: "callbacks.c", Exit: 4},
		{File: "caught.cc", Exit: 6, Tags: Exceptions | Long},
		{File: "closed_stdout.c", Exit: 3},
		{File: "cold.c", Exit: 13},
		{File: "cold_cases.c", Exit: 7},
		{File: "cold_entry.c"},
		{File: "computed_goto.c"},
		{File: "constructors.c", Exit: 5, Tags: EarlyCode},
		{File: "containers.cc"},
		{File: "conventions.c"},
		{File: "coroutines.c", Tags: Coroutine},
		{File: "counted.c"},
		{File: "dies_in_callback.c", Exit: 139, Tags: Signals | NoStatic},
		{File: "dies_in_handler.c", Exit: 6, Tags: Signals | Fault | NoStatic},
		{File: "dies_in_library.c", Exit: 139, Tags: Signals | NoStatic},
		{File: "distances.c"},
		{File: "early_faults.c", Exit: 139, Tags: Threads | Signals | NoStatic},
		{File: "empty.c"},
		{File: "exception_callbacks.cc", Tags: Exceptions},
		{File: "exception_loop.cc", Tags: Exceptions},
		{File: "exceptions.cc", Exit: 12, Tags: Exceptions},
		{File: "exec.c", Exit: 5, Tags: Execs},
		{File: "fault.c", Exit: 6, Tags: Signals | Jumps | Fault},
		{File: "fault_in_main.c", Exit: 6, Tags: Signals | Jumps | Fault},
		{File: "faulted_calls.c", Exit: 139, Tags: Signals | Jumps | Fault},
		{File: "faulted_exit.c", Exit: 11, Tags: Signals},
		{File: "fixup.c", Exit: 5, Tags: Signals | Fault},
		{File: "fixup_skip.c", Exit: 3, Tags: Signals | Fault},
		{File: "floats.c"},
		{File: "fork.c", Tags: Forks},
		{File: "function_tables.c"},
		{File: "guard_page.c", Tags: Signals | Jumps | Fault},
		{File: "hidden_ways.c", Tags: Jumps},
		{File: "ifunc.c", Tags: EarlyCode},
		{File: "inline_pushes.c"},
		{File: "jump_out.c", Exit: 8},
		{File: "labels.c"},
		{File: "lambdas.cc"},
		{File: "leaves.c"},
		{File: "library_faults.c", Exit: 9, Tags: Signals | Jumps | NoStatic},
		{File: "longjmp.c", Exit: 9, Tags: Jumps},
		{File: "loops.c", Exit: 7},
		{File: "machine.c", Exit: 62},
		{File: "many_paths.c"},
		{File: "mutual.c"},
		{File: "nested_functions.c", Exit: 7, Tags: Jumps | GNU},
		{File: "nested_handlers.c", Exit: 5, Tags: Signals},
		{File: "noreturn.c", Exit: 21, Tags: Jumps},
		{File: "overflow.c", Exit: 3, Tags: Threads | Signals | Jumps | Fault | NoStatic},
		{File: "own_names.c"},
		{File: "pending.c", Exit: 3, Tags: Signals | NoStatic},
		{File: "raised.c", Exit: 2, Tags: Signals},
		{File: "raw_thread.c", Tags: Threads | NoStatic},
		{File: "realigned.c", Exit: 6, Tags: Vector},
		{File: "recursion.c", Exit: 1, Args: []string{"1500"}, Soak: []string{"100000"}},
		{File: "relabelled.c"},
		{File: "rep.c"},
		{File: "rethrown.cc", Exit: 4, Tags: Exceptions | Long},
		{File: "server.c", Exit: 4, Tags: Threads | Vector | NoStatic},
		{File: "setjmp_again.c", Tags: Jumps},
		{File: "signal_jump.c", Exit: 8, Tags: Signals | Jumps},
		{File: "signals.c", Tags: Signals},
		{File: "stale_bounds.c"},
		{File: "statics.cc", Exit: 3, Tags: Exceptions},
		{File: "stored_labels.c"},
		{File: "switch_char.c"},
		{File: "switch_dense.c", Exit: 2},
		{File: "switch_in_try.cc", Exit: 9, Tags: Exceptions | Long},
		{File: "switch_sparse.c"},
		{File: "switcher.c", Tags: Coroutine},
		{File: "tailcalls.c"},
		{File: "thread_ends.c", Exit: 6, Tags: Threads | KillsThreads | Exceptions | NoStatic},
		{File: "threaded_code.c"},
		{File: "threads.c", Tags: Threads | NoStatic},
		{File: "thrown_faults.cc", Exit: 7, Tags: Signals | Exceptions | Fault | GNU | Longest},
		{File: "timer.c", Tags: Timer | Signals | Long},
		{File: "unseen_exit.c", Exit: 11, Tags: Signals | Fault | NoStatic},
		{File: "unseen_faults.c", Tags: Signals | Fault},
		{File: "unseen_handlers.c", Tags: Threads | Signals | Jumps | Fault | NoStatic},
		{File: "unwinding_exit.cc", Exit: 3, Tags: Exceptions},
		{File: "values_one.c"},
		{File: "variants.cc", Exit: 6, Tags: Exceptions},
		{File: "vfork.c", Tags: Forks},
		{File: "virtuals.cc", Tags: Exceptions},
		{File: "wrappers.cc", Exit: 5, Tags: Exceptions},
	}
	for i := range programs {
		p := &programs[i]
		p.Name, _, _ = strings.Cut(p.File, ".")
	}
	return programs
}
