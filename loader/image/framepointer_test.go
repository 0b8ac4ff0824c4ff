package image

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Where the caller's frame pointer is, at each row that readelf prints, is as readelf has it.
func TestFramePointersEqualReadelf(t *testing.T) {
	saved := 0
	for _, path := range []string{"/bin/bash", compile(t, "exceptions.cc", exceptions, "-O0"),
		compile(t, "realigned.c", realigned, "-O2")} {
		im := mustOpen(t, path)
		eachFramePointer(t, path, func(pc uint64, column string) {
			i := slices.IndexFunc(im.Ranges, func(r Range) bool { return r.Lo <= pc && pc < r.Hi })
			if i < 0 {
				return // a linkage stub
			}
			want := FPRule{}
			switch off, isOffset := strings.CutPrefix(column, "c"); {
			case isOffset:
				n, err := strconv.ParseInt(off, 10, 32)
				if err != nil {
					t.Fatal(err)
				}
				want.Off = int32(n)
				saved++
			case column != "u" && column != "":
				want.Fault = true
			}
			row, got, ok := im.Ranges[i].Unwind(pc)
			if !ok || got != want {
				t.Errorf("%s: at %x rbp is %+v (%v), by readelf %q", path, pc, got, ok, column)
			}
			if row != RowAt(im.Ranges[i].AppendRows(nil), pc) {
				t.Errorf("%s: at %x the row is %+v", path, pc, row)
			}
		})
	}
	if saved < 100 {
		t.Errorf("rbp is saved in %d rows", saved)
	}
}

// eachFramePointer calls back with the column of rbp of each row of the frame description entries
// that readelf prints; "": there is no such column.
func eachFramePointer(t *testing.T, path string, visit func(pc uint64, column string)) {
	t.Helper()
	at, inEntry := -1, false
	for line := range strings.Lines(run(t, "", "readelf", "--debug-dump=frames-interp", "-W",
		path)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 3 && (fields[3] == "CIE" || fields[3] == "FDE"):
			inEntry, at = fields[3] == "FDE", -1
		case len(fields) > 1 && fields[0] == "LOC":
			at = slices.Index(fields, "rbp")
		case inEntry && len(fields) > 2 && len(fields[0]) == 16:
			column := ""
			if at >= 0 {
				column = fields[at]
			}
			visit(hexNumber(t, fields[0]), column)
		}
	}
}
