package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/names"
)

// WriteStat writes the figures one a line, name and value separated by a space. The names are those
// of the JSON object; what is not known, or not in doubt where it would bound that, is "-", a share
// in doubt "unknown", and a slow_down of which only the least is known begins with ">=".
func WriteStat(w io.Writer, x query.Stat) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "schema_version", SchemaVersion)
	v := reflect.ValueOf(x)
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name, value := tag.Get("json"), statText(v.Field(i).Interface())
		if name == "sampled" && x.Sampled == 0 {
			value = "unknown"
		}
		if zero := tag.Get("zero"); zero != "" && v.Field(i).IsZero() {
			value = zero
		}
		if name == "slow_down" && (x.SlowDownVague || x.SlowDown >= wpp.MostSlowDown) {
			value = ">=" + statText(min(x.SlowDown, wpp.MostSlowDown))
		}
		fmt.Fprintln(out, name, value)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}

func statText(value any) string {
	switch v := value.(type) {
	case float64:
		if v > 0 && v < 0.1 {
			return strconv.FormatFloat(v, 'g', 3, 64)
		}
		return strconv.FormatFloat(v, 'f', 3, 64)
	case []string:
		return statText(strings.Join(v, " "))
	case string:
		return cmp.Or(names.Printable(v), "-")
	case *uint32:
		if v == nil {
			return "-"
		}
		return fmt.Sprint(*v)
	}
	return fmt.Sprint(value)
}

// StatJSON is what stat --json prints, and a recording with --json where it ends.
type StatJSON struct {
	// of these figures: within a version, they only become more
	SchemaVersion int `json:"schema_version"`
	query.Stat
}

// MarshalJSON writes what is not known as null.
func (x StatJSON) MarshalJSON() ([]byte, error) {
	unknown := unknownFigures(&x.Stat)
	out := fmt.Appendf(nil, `{"schema_version":%d`, x.SchemaVersion)
	v := reflect.ValueOf(x.Stat)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("json")
		text := []byte("null")
		if !unknown[name] {
			var err error
			if text, err = Marshal(v.Field(i).Interface()); err != nil {
				return nil, err
			}
		}
		out = fmt.Appendf(out, `,%q:%s`, name, text)
	}
	return append(out, '}'), nil
}

// unknownFigures returns the names of those that are not known, for which a Stat has a zero.
func unknownFigures(x *query.Stat) map[string]bool {
	noGrammars := x.Rules == 0 // as in a path profile

	measured := x.Probes > 0 // by wpptrace itself: a trace of another tool has none of these
	return map[string]bool{
		"command": len(x.Command) == 0, "pid": x.PID == 0, "started": x.Started == "",
		"ended":            x.Ended == "",
		"killed_by_signal": x.Signal == 0, "kernel": x.Kernel == "",
		"wpptrace_version": x.Tool == "",

		"instructions": x.Instructions == 0 && x.Paths > 0,
		"rules":        noGrammars, "rhs_symbols": noGrammars,
		"grammar_ascii_bytes":            noGrammars,
		"rules_per_path":                 noGrammars || x.DistinctPaths == 0,
		"grammar_bytes":                  x.GrammarBytes == 0,
		"ratio_ascii":                    x.GrammarASCIIBytes == 0,
		"ratio":                          x.GrammarBytes == 0,
		"trace_bytes_per_second":         x.DurationSeconds == 0,
		"grammar_ascii_bytes_per_second": noGrammars || x.DurationSeconds == 0,
		"bits_per_instruction":           x.GrammarBytes == 0 || x.Instructions == 0,

		"duration_seconds": x.DurationSeconds == 0, "cpu_seconds": x.CPUSeconds == 0,
		"hits": !measured, "hits_single_stepped": !measured, "hits_per_path": !measured ||
			x.Paths == 0,
		"ns_per_hit": x.HitTime == 0, "ns_per_hit_over_probe": x.ReportTime == 0,
		"words":     !measured,
		"slow_down": x.SlowDown == 0, "slow_down_vague": x.SlowDown == 0,
		"slow_down_most": x.SlowDownMost == 0, "slow_down_likely": x.SlowDownLikely == 0,
		"probes": !measured, "probes_single_stepped": !measured, "anomalies": !measured,
		"sampled": x.Sampled == 0, "sampled_least": x.SampledLeast == 0,
		"sampled_most": x.SampledMost == 0, "longest_stall_seconds": x.LongestStall == 0,
	}
}

// WriteStatJSON writes the figures as one JSON object.
func WriteStatJSON(w io.Writer, x query.Stat) error {
	return WriteJSON(w, StatJSON{SchemaVersion, x}, "figures")
}

// WriteRoutines writes a line for each contiguous range of each routine, five fields separated by
// tabs: IMAGE START END STATE NAME. Addresses are link-time, in hex without 0x, END exclusive;
// STATE is "observed" or "left-out:REASON".
func WriteRoutines(w io.Writer, s *wpp.Snapshot) error {
	out := bufio.NewWriter(w)
	for i := range s.Routines {
		r := &s.Routines[i]
		state := "observed"
		if r.LeftOut != "" {
			state = "left-out:" + names.Printable(r.LeftOut)
		}
		for _, span := range r.Ranges {
			fmt.Fprintf(out, "%s\t%x\t%x\t%s\t%s\n", names.Printable(s.Images[r.Image].Base()),
				span.Lo, span.Hi, state, names.Plain(r))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write routines: %w", err)
	}
	return nil
}
