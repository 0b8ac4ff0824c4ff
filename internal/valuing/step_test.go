package valuing_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
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
print $rax
print rax
info registers
info locals
info globals
print x
up
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
print $xmm0
x $rdx:2
x $rax
goto 1
goto 99
goto x
info break
delete
until clip+0xb
rn
until
x/main
thread 9
next 0
fly
quit
next`
	const want = `clip+0x0, clip.c:2
$rdi = 0x7
clip+0x8, clip.c:3
clip+0x0, clip.c:2
#0  clip+0x0, clip.c:2
$rax = -
print: no variable rax has a place that is known here: info locals, info globals list those that have
rax     -
rcx     -
rdx     0x7000
rbx     -
rsp     -
rbp     -
rsi     0x5
rdi     0x3
r8      -
r9      -
r10     -
r11     -
r12     -
r13     -
r14     -
r15     -
rip     0x401000
eflags  CF=- PF=- AF=- ZF=- SF=- OF=- DF=-
x = 3
lost = -
pair = {count = -1, flag = 5, next = -}
five = 5
x = 3
up: there is none that is known
The end of what was recorded of the thread.
clip+0xe
7000: 03? 00? 00? 00? 00? 00? 00? 00? - -
clip+0x0, clip.c:2
clip+0x8, clip.c:3
The start of what was recorded of the thread.
clip+0x0, clip.c:2
Break 1 at clip.c:3
Break 2 at clip
1  clip.c:3
2  clip
Break 1 at clip.c:3
clip+0x8, clip.c:3
Break 2 at clip
clip+0x0, clip.c:2
The end of what was recorded of the thread.
clip+0xe
Break 2 at clip
clip+0x0, clip.c:2
clip+0xe
$eflags = CF=1 PF=0 AF=1 ZF=0 SF=1 OF=0 DF=-
The end of what was recorded of the thread.
clip+0xe
Break 2 at clip
clip+0x0, clip.c:2
clip+0x0, clip.c:2
* 4711  demo
list: stat src/clip.c: no such file or directory
$rip = 0x401000
print: $xmm0 is no general register of 64 bits, nor $rip or $eflags
7000: - -
x: $rax is -: "-" is no address in hex
clip+0x0, clip.c:2
goto: nothing was executed at position 99, or behind it
goto: "x" is no position
2  clip
clip+0xb
clip+0x0, clip.c:2
The end of what was recorded of the thread.
clip+0xe
x: "main" is no address in hex
thread: the snapshot has no thread 9
next: "0" is no number of times from 1
fly: no such command: help lists all
`
	q := &valuing.Step{Input: strings.NewReader(script)}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	q.Add(f)
	var text strings.Builder
	if err := q.Write(&text, querytest.Variables()); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestStepWatch: who writes some bytes is found, and what they were and are.
func TestStepWatch(t *testing.T) {
	q := &valuing.Step{Input: strings.NewReader(`watch 7000:4
watch x
watch
info break
c
c
rc
delete 1
info break
rc
`)}
	var text strings.Builder
	if err := q.Write(&text, querytest.Variables()); err != nil {
		t.Fatal(err)
	}
	const want = `clip+0x0, clip.c:2
Watch 1 at 7000:4: 7000:4
watch: x is nowhere in memory here, or it is not known where
watch: give VARIABLE or ADDRESS:SIZE
1  watch 7000:4
Watch 1 at 7000:4 is written: - -> 0x5?
clip+0xb
Watch 1 at 7000:4 is written: - -> 0x3?
clip+0xb
Watch 1 at 7000:4 is written: - -> 0x5?
clip+0xb
The start of what was recorded of the thread.
clip+0x0, clip.c:2
`
	if text.String() != want {
		t.Errorf("%s\nwant\n%s", text.String(), want)
	}
}

// TestStepThreads: a thread is stepped through by itself, and breaks hold in each.
func TestStepThreads(t *testing.T) {
	q := &valuing.Step{Input: strings.NewReader(
		"b clip.c:3\nthread 4712\nc\nthread 4711\nc\nrn\nt 4712\nt 7\n")}
	var text strings.Builder
	if err := q.Write(&text, querytest.Threads()); err != nil {
		t.Fatal(err)
	}
	const want = `clip+0x0, clip.c:2
Break 1 at clip.c:3
clip+0x0, clip.c:2
Break 1 at clip.c:3
clip+0x8, clip.c:3
clip+0x0, clip.c:2
Break 1 at clip.c:3
clip+0x8, clip.c:3
clip+0x0, clip.c:2
clip+0x8, clip.c:3
t: the snapshot has no thread 7
`
	if text.String() != want {
		t.Errorf("%s\nwant\n%s", text.String(), want)
	}
}

// TestStepList: the source is written where its file is there, without what a terminal obeys.
func TestStepList(t *testing.T) {
	s := querytest.Values()
	s.Files[0] = filepath.Join(t.TempDir(), "clip.c")
	err := os.WriteFile(s.Files[0], []byte("long clip(\n\tif (x \x1b> limit)\n\t\tx = limit;\n"),
		0o600)
	if err != nil {
		t.Fatal(err)
	}
	q := &valuing.Step{Input: strings.NewReader("list\n")}
	var text strings.Builder
	if err := q.Write(&text, s); err != nil {
		t.Fatal(err)
	}
	const want = "clip+0x0, clip.c:2\n2\t\tif (x ?> limit)\n" +
		"1\tlong clip(\n2\t\tif (x ?> limit)\n3\t\t\tx = limit;\n"
	if text.String() != want {
		t.Errorf("%q, want %q", text.String(), want)
	}
}

// TestStepDAPPort: an editor is served on a port of this machine, and the command ends with it.
func TestStepDAPPort(t *testing.T) {
	q := &valuing.Step{}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	q.Add(f)
	if err := f.Parse([]string{"--dap=0"}); err != nil || q.NeedsSnapshot() {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- q.Write(w, querytest.Values()) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "DAP server listening at: 127.0.0.1:")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+addr)
	if err != nil {
		t.Fatal(err)
	}
	const request = `{"seq":1,"type":"request","command":"threads"}`
	fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n%s", len(request), request)
	if text, err := bufio.NewReader(conn).ReadString('}'); err != nil ||
		!strings.Contains(text, "launch has not come") {
		t.Errorf("%q, %v", text, err)
	}
	conn.Close()
	if err := <-ended; err != nil {
		t.Error(err)
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

// FuzzStep: whatever is asked is answered.
func FuzzStep(f *testing.F) {
	f.Add("break clip.c:3\nc\nrn 2\n\nx/7000:20\ninfo registers\nfinish\nrc\nwhere")
	f.Add("x/ffffffffffffffff:4096\nx/0:-1\nbreak clip+\nbreak :\ndelete 0\nthread -1\nprint $")
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 1000 {
			return
		}
		q := &valuing.Step{Input: strings.NewReader(script)}
		var text strings.Builder
		if err := q.Write(&text, querytest.Values()); err != nil {
			t.Error(err)
		}
	})
}

// TestStepAsInGDB: commands as somebody types them who has those of gdb in the fingers.
func TestStepAsInGDB(t *testing.T) {
	q := &valuing.Step{Input: strings.NewReader(`print/x x
p/t x
print/d $rdx
p/x pair
p &five
p &none
print x+1
print 5
print/o x
print
break clip if x == 3
tbreak 3
c
info break
x/2xw $rdx
stepi 2
x/2xw $rdx
x/8db $rdx
x/2dh 7000
x/xg 7000
x/2xg $rdx-8
x/s $rdx
x/i 7000
x/0x 7000
x/4xq 7000
x/xw lost
frame
frame 3
f 0
f x
info args
info registers rdx
info line
display x
nexti
tui
whe
re
up 2
rc
b 3
c 2
c 2
`)}
	var text strings.Builder
	if err := q.Write(&text, querytest.Variables()); err != nil {
		t.Fatal(err)
	}
	const want = `clip+0x0, clip.c:2
x = 0x7
x = 111
$rdx = 28672
pair = {count = 0xffff, flag = 0x5, next = -}
p: five is nowhere in memory here, or it is not known where
p: no variable none has a place that is known here: info locals, info globals list those that have
print: x+1: nothing is computed: VARIABLE, with parts of it as p->next, p[3], *p and &p, and $REGISTER are known
print: 5: nothing is computed: VARIABLE, with parts of it as p->next, p[3], *p and &p, and $REGISTER are known
print: "o" is no form: x, d, u, t and c are
print: give VARIABLE, &VARIABLE or $REGISTER
break: a break has no condition: wpptrace values --var and --at list what had which value, and goto POSITION goes there
Break 1 at clip.c:3
Break 1 at clip.c:3
clip+0x8, clip.c:3
7000: 0x-------- 0x--------
clip+0xe
7000: 0x5? 0x0?
7000: 5? 0? 0? 0? 0? 0? 0? 0?
7000: 5? 0?
7000: 0x5?
6ff8: 0x---------------- 0x5?
7000: "\x05"?
x: "i": wpptrace dump --as values lists the instructions that ran
x: "0" is no number from 1 to 1024
x: "4xq": a number, one of x, d, u, t, c, s and a, and one of b, h, w and g are known
x: lost is not known
#0  clip+0xe
frame: there is none that is known
#0  clip+0xe
f: "x" is no number of an activation: where counts them
info: give locals, which has the arguments, too, globals, registers, threads or break
$rdx = 0x7000
info: give locals, which has the arguments, too, globals, registers, threads or break
display: there is no such command: nothing is printed at each stop but the line: print VARIABLE or info locals do so, and an empty line the same once more
nexti: there is no such command: stepi and reverse-stepi go by instruction, into calls, too; finish goes out of them
tui: there is no such command: nothing is printed at each stop but the line: print VARIABLE or info locals do so, and an empty line the same once more
#0  clip+0xe
re: no such command: help lists all
up: there is none that is known
The start of what was recorded of the thread.
clip+0x0, clip.c:2
Break 2 at clip.c:3
The end of what was recorded of the thread.
clip+0xe
The end of what was recorded of the thread.
clip+0xe
`
	if text.String() != want {
		t.Errorf("%s\nwant\n%s", text.String(), want)
	}
}

// TestStepNothingRan: where no traced routine ran, step and values --stat say so.
func TestStepNothingRan(t *testing.T) {
	s := querytest.Values()
	s.Threads, s.Sections = nil, s.Sections[:1]
	q := &valuing.Step{Input: strings.NewReader("next\n")}
	var text strings.Builder
	const want = "none of the traced routines ran"
	if err := q.Write(&text, s); err == nil || err.Error() != "step: "+want {
		t.Error(err)
	}
	if err := valuing.WriteStat(&text, s); err != nil || text.String() != want+"\n" {
		t.Errorf("%q, %v", text.String(), err)
	}
}
