package valuing_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"wpptrace/internal/valuing"
	"wpptrace/query/querytest"
)

// TestStep: a script of commands, and what each answers.
func TestStep(t *testing.T) {
	const script = `print $rdi
next

where
print rax
info registers
continue
x/7000:10
rn
rs
reverse-continue
break clip.c:3
break clip
info break
c
c
c
delete 1
rc
stepi 4
print $eflags
finish
reverse-finish
thread 4711
info threads
list
print $rip
x/main
thread 9
next 0
fly
quit
next`
	const want = `clip+0x0, clip.c:2
rdi     -
clip+0x8, clip.c:3
clip+0x0, clip.c:2
`
	q := &valuing.Step{Input: strings.NewReader(script)}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	q.Add(f)
	var text strings.Builder
	if err := q.Write(&text, querytest.Values()); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestStepFails(t *testing.T) {
	q := &valuing.Step{Input: strings.NewReader("")}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	q.Add(f)
	if err := f.Parse([]string{"--tid", "1"}); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	err := q.Write(&text, querytest.Values())
	if err == nil || err.Error() != "step: the snapshot has no thread 1" {
		t.Error(err)
	}
}
