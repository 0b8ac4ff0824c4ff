package tables_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
	"wpptrace/query/tables"
	"wpptrace/query/values"
)

// A routine ran twice: six instructions the first time, five the second.
func ExampleMake() {
	rows, err := tables.Make(querytest.Values())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rows[0].Table, rows[0].What, rows[0].Value)
	// Output: 1 instructions executed 11
}

// Of the two runs of clip, sizes before compression are those that its instructions say.
func TestMake(t *testing.T) {
	s := querytest.Values()
	s.Figures.Duration = 2 * time.Minute
	rows, err := tables.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, r := range rows {
		all[r.Table+" "+r.What+" "+r.Unit] = r.Value
	}
	for what, want := range map[string]float64{
		"2 timestamps before compression bytes": 4 * 11,
		// mov, its like where the argument was greater, and the stack pointer of each return
		"2 values before compression bytes":                          4 * 5,
		"2 timestamps, first tier: ratio of one a path ":             11.0 / 2,
		"6 control flow forward bytes":                               4 * 11,
		"6 control flow backward bytes":                              4 * 11,
		"7 load values bytes":                                        0, // it is not known where the returns lie
		"8 addresses of loads and stores bytes":                      8 * 2,
		"3 edge labels in the file: they follow from the rest bytes": 0,
		"4 branches mispredicted: space of a bit for each, of an instruction, were they recorded " +
			"bits": 2.0 / 11, // a jump in each run, a store, and what each return reads
		"4 stores missed: space of a bit for each, of an instruction, were they recorded bits": 2.0 / 11,
		"4 loads missed: space of a bit for each, of an instruction, were they recorded bits":  2.0 / 11,
		"5 instructions executed ":                    11,
		"5 recording, with the program's own run min": 2,
		"5 of these, a million instructions s":        120e6 / 11,
	} {
		if got, ok := all[what]; !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", what, got, ok, want)
		}
	}
	if sum := all["2 timestamps before compression bytes"] +
		all["2 values before compression bytes"] +
		all["3 edge labels before compression bytes"]; sum != all["1 before compression bytes"] {
		t.Errorf("the components are %v bytes together, and all is %v", sum,
			all["1 before compression bytes"])
	}
	// all of it is the last beginning: its ratio is that of all but for the frames of sections
	all9, all1 := all["figure 9 ratio after 11 instructions "], all["1 ratio "]
	if all9 < all1 || all9 > 2*all1 {
		t.Errorf("ratio %v of all, and %v of the last beginning", all1, all9)
	}
	if _, err := tables.Make(&wpp.Snapshot{}); !errors.Is(err, values.ErrNone) {
		t.Error(err)
	}
}

// TestOrder: rows are in the order of tables, those of figures behind.
func TestOrder(t *testing.T) {
	s := querytest.Values()
	s.Figures.Duration = time.Minute
	rows, err := tables.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.Table)
	}
	want := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "figure 8", "figure 9"}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCSV(t *testing.T) {
	var text strings.Builder
	err := tables.CSV(&text, []tables.Row{{"1", "of these, code", 12, "bytes", 0},
		{"1", "ratio", 1.23456, "", 41.33}})
	const want = "table,what,value,unit,paper\n1,\"of these, code\",12,bytes,\n1,ratio,1.235,,41.33\n"
	if err != nil || text.String() != want {
		t.Errorf("%v %s, want %s", err, text.String(), want)
	}
}
