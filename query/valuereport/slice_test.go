package valuereport_test

import (
	"io"
	"strings"
	"testing"

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
	for q, want := range map[values.WatchQuery]string{
		{Addr: 0x7004, Size: 1}: `
     TID      POSITION  WHERE, LINE: ACCESS
    4711             0  clip+0xb: w[7000:8]=5
    4711             1  clip+0xb: w[7000:8]=3
2 accesses, and 2 of which it is not known where
`,
		{Addr: 0x7008, Size: 8, WritesOnly: true, TID: 4711}: `
     TID      POSITION  WHERE, LINE: ACCESS
0 accesses
`} {
		var text strings.Builder
		if err := valuereport.WriteWatch(&text, s, q); err != nil || "\n"+text.String() != want {
			t.Errorf("got %s%v, want %s", text.String(), err, want)
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
