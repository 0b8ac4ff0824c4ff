package valuereport_test

import (
	"strings"
	"testing"

	"wpptrace/query"
	"wpptrace/query/querytest"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

func TestWriteHotData(t *testing.T) {
	s := querytest.Values()
	r, err := values.ReferencesOf(s)
	if err != nil {
		t.Fatal(err)
	}
	hot, err := query.Hot(r.Trace, query.HotQuery{MinLength: 2, MaxLength: 3,
		Kind: query.Maximal, Metric: query.Executions})
	if err != nil {
		t.Fatal(err)
	}
	const want = `
Trace: demo (1 thread)
Total: 2 accesses, to 1 address
Left out: 2 accesses of the stack, 0 accesses of which it is not known where
Showing 1 of 1 maximal hot sequence, which cover 100.00%
Hot: 2 to 3 accesses long, 1 access in all or more

  SHARE     CUM.       COUNT    LEN  ADDRESS, READS+WRITES, FIRST BY
100.00%  100.00%           1      2  7000:8  0+2  clip+0xb x2
`
	var text strings.Builder
	if err := valuereport.WriteHotData(&text, s, r, hot); err != nil || "\n"+text.String() != want {
		t.Errorf("got %s%v, want %s", text.String(), err, want)
	}
	const object = `"sequences":[{"share":1,"cumulative":1,"count":1,"covered":2,"references":[` +
		`{"address":"7000","size":8,"reads":0,"writes":2,"routine":"clip","offset":11},`
	text.Reset()
	if err := valuereport.WriteHotDataJSON(&text, s, r, hot); err != nil ||
		!strings.Contains(text.String(), object) {
		t.Errorf("got %s%v, want %s", text.String(), err, object)
	}
}
