package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// begetter starts a process, a thread, or nothing.
const begetter = `
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static char *volatile name;
__attribute__((noinline)) static char *get(void) { return name; }
static void *thread(void *arg) { return arg; }
int main(int c, char **v) {
	pthread_t t;
	for (int i = 0; i < 100; i++) get();
	switch (v[1][0]) {
	case 'p': if (!fork()) _exit(0); wait(0); break;
	case 't': pthread_create(&t, 0, thread, 0); pthread_join(t, 0); break;
	}
	return 0;
}`

// Processes that the target starts are not traced; the recording says that there are some.
func TestChildren(t *testing.T) {
	program := compileC(t, begetter, "-O1", "-pthread")
	for child, want := range map[string]bool{"process": true, "thread": false, "none": false} {
		_, errs, status := wpptrace("-o", filepath.Join(t.TempDir(), "x.wpp"), "--", program, child)
		if got := strings.Contains(errs, " (prog) has started others, which were not traced: --follow-fork traces them, too\n"); status != 0 || got != want {
			t.Errorf("%s: status %d, %s", child, status, errs)
		}
	}
}

// A selection whose hits are single-stepped is warned of.
func TestSelectionIsSlow(t *testing.T) {
	program := compileC(t, begetter, "-O1", "-pthread")
	for selected, want := range map[string]bool{"^get$": true, "^main$": false} {
		_, errs, status := wpptrace("-F", selected, "-o", filepath.Join(t.TempDir(), "x.wpp"), "--", program, "none")
		const warning = "wpptrace: 100% of the expected hits are single-stepped, and slow, most in get: -N leaves it out\n"
		if status != 0 || strings.Contains(errs, warning) != want {
			t.Errorf("-F %s: status %d, %s", selected, status, errs)
		}
	}
}
