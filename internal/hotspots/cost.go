package hotspots

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"wpptrace/query"
)

// SetLeast sets the least cost of a hot subpath: a number, or a share of the cost of all.
func SetLeast(q *query.HotQuery, text string) (err error) {
	q.MinCost, q.MinShare = 0, 0
	share, isShare := strings.CutSuffix(text, "%")
	if !isShare {
		q.MinCost, err = strconv.ParseUint(text, 10, 64)
		return err
	}
	// in one step: a quotient of what was rounded is rounded twice
	q.MinShare, err = strconv.ParseFloat(share+"e-2", 64)
	if err == nil && !(q.MinShare >= 0 && q.MinShare <= 1) {
		err = strconv.ErrRange
	}
	return err
}

// costs says where the costs are that text names: a metric, or the column of a table, FILE or
// FILE:COLUMN.
func costs(text string) (metric query.Metric, file, column string, err error) {
	if m := query.Metric(text); text == "" || m == query.Instructions || m == query.Executions {
		return m, "", "", nil
	}
	file = text
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && strings.Contains(text, ":") {
		colon := strings.LastIndexByte(text, ':')
		file, column = text[:colon], text[colon+1:]
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return "", "", "", fmt.Errorf("unknown cost %q: it is neither instructions nor count, nor "+
			"a file", text)
	}
	return "", file, column, nil
}

func readCosts(file, column string) (*query.CostTable, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read costs: %w", err)
	}
	defer f.Close()
	table, err := query.ReadCosts(f, column)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return table, nil
}
