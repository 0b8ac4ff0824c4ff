package loads_test

import (
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

// planned plans a program as recordings of values do.
func planned(t testing.TB, path string) *plan.Plan {
	t.Helper()
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planner.Make(program, planner.Options{EveryRound: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMostReads(t *testing.T) {
	for _, path := range []string{"/bin/gzip", "/bin/bash", "/usr/bin/sqlite3", "/usr/bin/python3",
		"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"} {
		if !testenv.Have(t, path) {
			continue
		}
		p := planned(t, path)
		{
			began := time.Now()
			l, err := loads.Make(p, loads.Options{Extra: true})
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			figures := l.Figures()
			reads := func(x *loads.ProgramFigure) float64 { return x.Mean.Reads }
			steps := func(x *loads.ProgramFigure) float64 { return x.Mean.Steps }
			words := func(x *loads.ProgramFigure) float64 { return x.Mean.Words }
			ways := func(x *loads.ProgramFigure) float64 { return float64(x.Ways) }
			var sum loads.LoadFigures
			cut, most := 0, 0
			for i := range figures {
				x := &figures[i]
				sum.Read += x.Loads.Read
				sum.Forwarded += x.Loads.Forwarded
				sum.Private += x.Loads.Private
				sum.ReadOnly += x.Loads.ReadOnly
				sum.NotComputable += x.Loads.NotComputable
				sum.Beyond += x.Loads.Beyond
				if x.Cut {
					cut++
				}
				most = max(most, x.MostReads)
			}
			base, extra := 0.0, 0.0
			for i := range p.Sites {
				base += p.Sites[i].Expected
			}
			for _, x := range l.Extra {
				extra += p.Routines[x.Routine].Runs(x.Block)
			}
			behind := 0
			for _, k := range l.Looks {
				if k.Behind > 0 {
					behind++
				}
			}
			t.Logf("%d looks read behind", behind)
			t.Logf("%d extra sites, %.3f of hits", len(l.Extra), extra/base)
			leaves := 0
			for _, k := range l.Looks {
				if k.Leaves[0] || k.Leaves[1] {
					leaves++
				}
			}
			t.Logf("%s: %d sites, %d steps, %d cases, %v; reads %.2f/%.2f/%.2f/%d steps "+
				"%.1f/%.1f/%.1f words %.2f ways %.1f/%.0f; loads %+v; cut %d; leave %d", path,
				len(p.Sites), len(l.Steps), len(l.Cases), took, figures.Mean(reads),
				figures.Share(0.5, reads), figures.Share(0.99, reads), most, figures.Mean(steps),
				figures.Share(0.5, steps), figures.Share(0.99, steps), figures.Mean(words),
				figures.Mean(ways), figures.Share(0.99, ways), sum, cut, leaves)
		}
	}
}

// BenchmarkMake plans the loads of a large program.
func BenchmarkMake(b *testing.B) {
	const path = "/bin/bash"
	if !testenv.Have(b, path) {
		b.Skip("there is no " + path)
	}
	p := planned(b, path)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loads.Make(p, loads.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(p.Sites)), "sites")
}
