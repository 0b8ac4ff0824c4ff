package valuereport_test

import (
	"io"
	"strings"
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/query/querytest"
	"wpptrace/query/slice"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

func TestWriteSlice(t *testing.T) {
	s := querytest.Values()
	for forward, want := range map[bool]string{
		false: `
clip+0xb, execution 2 of 2 in thread 4711: what it depends on: 2 of 11 instructions executed

     TIMES  WHERE, LINE: VALUES
         1  clip+0xb: w[7000:8]=3
         1  clip+0x0, clip.c:2: rax=3
`,
		true: `
clip+0xb, execution 2 of 2 in thread 4711: what depends on it: 1 of 11 instructions executed

     TIMES  WHERE, LINE: VALUES
         1  clip+0xb: w[7000:8]=3
`} {
		a, err := slice.Ask(s, slice.Query{At: "clip+0xb", By: slice.Data, Forward: forward})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := valuereport.WriteSlice(&text, s, a); err != nil || "\n"+text.String() != want {
			t.Errorf("got %s%v, want %s", text.String(), err, want)
		}
	}
	a := &slice.Answer{Where: &values.Where{}, At: make([]slice.Place, 1), Unsure: 2, Opaque: 1}
	var text strings.Builder
	if err := valuereport.WriteSlice(&text, s, a); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n2 stores of which it is not known where: what is written there is missing\n",
		"\n1 instruction executed and not emulated: what is used there is missing\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s lacks %s", text.String(), want)
		}
	}
}

func TestWriteWatch(t *testing.T) {
	s := querytest.Values()
	for _, c := range []struct {
		q    values.WatchQuery
		want string
	}{
		{values.WatchQuery{Addr: 0x7004, Size: 1}, `
     TID      POSITION  WHERE, LINE: ACCESS
    4711             0  clip+0xb: w[7000:8]=5
    4711             1  clip+0xb: w[7000:8]=3
2 accesses, and 2 of which it is not known where
`},
		{values.WatchQuery{Addr: 0x7008, Size: 8, WritesOnly: true, TID: 4711}, `
     TID      POSITION  WHERE, LINE: ACCESS
0 accesses
`}} {
		var text strings.Builder
		if err := valuereport.WriteWatch(&text, s, c.q); err != nil || "\n"+text.String() != c.want {
			t.Errorf("got %s%v, want %s", text.String(), err, c.want)
		}
	}
	err := valuereport.WriteWatch(io.Discard, s, values.WatchQuery{Size: 1, TID: 1})
	if err == nil || err.Error() != "watch: the snapshot has no thread 1" {
		t.Error(err)
	}
}

func TestWriteSliceLines(t *testing.T) {
	s := querytest.Values()
	a, err := slice.Ask(s, slice.Query{At: "clip+0xb", Instance: 1, By: slice.Data | slice.Control})
	if err != nil {
		t.Fatal(err)
	}
	const want = `
clip+0xb, execution 1 of 2 in thread 4711: what it depends on: 5 of 11 instructions executed

  AWAY   TIMES  LINE: VALUES
     0       1  clip: w[7000:8]=5
     1       1  clip.c:3 in clip: rax=5
     2       3  clip.c:2 in clip: rax=7
`
	var text strings.Builder
	if err := valuereport.WriteSliceLines(&text, s, a); err != nil || "\n"+text.String() != want {
		t.Errorf("got %s%v, want %s", text.String(), err, want)
	}
}

// TestFormsOfSlices: a slice and what is watched as JSON and CSV.
func TestFormsOfSlices(t *testing.T) {
	s := querytest.Values()
	a, err := slice.Ask(s, slice.Query{At: "clip+0xb", Instance: 1, By: slice.Data | slice.Control})
	if err != nil {
		t.Fatal(err)
	}
	a.Others, a.Parts[0].Others = 1, 1
	a.Parts[0].Foreign = &slice.Foreign{Read: a.Parts[0].Last, Since: &a.Parts[1].Place,
		Likely: []slice.Writer{{Place: a.Parts[1].Place, TID: 9, Times: 1}}}
	q := values.WatchQuery{Addr: 0x7004, Size: 1}
	for name, c := range map[string]struct {
		write func(w io.Writer) error
		want  string
	}{
		"slice": {func(w io.Writer) error { return valuereport.WriteSliceLines(w, s, a) },
			"1 read of what code that is not traced wrote, or another thread: it ends there\n\n" +
				"  AWAY   TIMES  LINE: VALUES\n" +
				"     0       1  clip: w[7000:8]=5, which others wrote after clip+0x8, clip.c:3, " +
				"likely thread 9 at clip+0x8, clip.c:3\n"},
		"lines": {func(w io.Writer) error { return valuereport.WriteSliceJSON(w, s, a, false) },
			`"others":1,"doubtful":0,"parts":[{"away":0,"times":1,"routine":"clip","written":[],"accesses":` +
				`[{"write":true,"address":"7000","size":8,"value":"5","confirmed":true}],` +
				`"foreign":[{"accesses":[{"write":true,"address":"7000","size":8,"value":"5",` +
				`"confirmed":true}],"since":{"thread":4711,"routine":"clip","offset":8,` +
				`"file":"src/clip.c","line":3},"likely":[{"thread":9,"routine":"clip",` +
				`"offset":8,"file":"src/clip.c","line":3}]}]},`},
		"instructions": {func(w io.Writer) error { return valuereport.WriteSliceJSON(w, s, a, true) },
			`{"away":1,"times":1,"routine":"clip","offset":8,"file":"src/clip.c","line":3,` +
				`"written":[{"register":"rax","value":"5","confirmed":true}],"accesses":[]}`},
		"lines.csv": {func(w io.Writer) error { return valuereport.WriteSliceCSV(w, s, a, false) },
			"away,times,routine,offset,file,line,values,others\n0,1,clip,,,,w[7000:8]=5,1\n" +
				"1,1,clip,,src/clip.c,3,rax=5,\n"},
		"instructions.csv": {func(w io.Writer) error {
			return valuereport.WriteSliceCSV(w, s, a, true)
		}, "1,1,clip,8,src/clip.c,3,rax=5,\n"},
		"watch": {func(w io.Writer) error { return valuereport.WriteWatchJSON(w, s, "7004", q) },
			`{"schema_version":2,"of":"7004","accesses":[{"thread":4711,"position":0,` +
				`"routine":"clip","offset":11,"write":true,"address":"7000","size":8,"value":"5",` +
				`"confirmed":true},{`},
		"nothing": {func(w io.Writer) error {
			return valuereport.WriteWatchJSON(w, s, "8", values.WatchQuery{Addr: 8, Size: 1})
		}, `"accesses":[],"unknown":2}` + "\n"},
		"watch.csv": {func(w io.Writer) error { return valuereport.WriteWatchCSV(w, s, q) },
			"thread,position,routine,offset,file,line,variable,instance,access,address,size,value," +
				"known\n4711,0,clip,11,,,,,write,7000,8,5,confirmed\n"},
	} {
		var text strings.Builder
		if err := c.write(&text); err != nil || !strings.Contains(text.String(), c.want) {
			t.Errorf("%s: %v, %s lacks %s", name, err, text.String(), c.want)
		}
	}
}

// TestSliceOfSeveralExecutions: values are those of one execution of a line, and behind them is of
// how many.
func TestSliceOfSeveralExecutions(t *testing.T) {
	s := querytest.Values()
	last := &wet.Executed{Code: &machine.Insn{}, Written: []wet.Register{{Number: machine.RAX,
		Value: 5, Known: machine.Confirmed}}}
	a := &slice.Answer{Where: &values.Where{}, At: make([]slice.Place, 1), Parts: []slice.Part{
		{Times: 3, Last: last}, {Place: slice.Place{Insn: 1, Addr: 0x401003}, Times: 2},
		{Place: slice.Place{Block: 1, Addr: 0x401008}, Times: 1, Last: last}}}
	var text strings.Builder
	if err := valuereport.WriteSliceLines(&text, s, a); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5  clip.c:2 in clip: rax=5 (1 of 3)\n",
		"1  clip.c:3 in clip: rax=5\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s lacks %s", &text, want)
		}
	}
}
