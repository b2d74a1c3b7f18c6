// SPDX-License-Identifier: Apache-2.0

package detectors

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// fast is the name of the column that the others are compared with.
const fast = "pellucid, fast model"

// own are the columns of ours. A classifier that comes with the program may have been trained
// on the rows: one that is measured here needs scores of a model that has not seen them.
func own(ctx context.Context, rows []row) ([]*column, error) {
	left, err := asked(ctx, fast, int64(len(local.Default().Bytes())), local.Classifier{Model: local.Default()}, rows)
	if err != nil {
		return nil, err
	}
	limit := limitAt(scores(rows, func(r row) bool { return !r.attack }, func(r row) float64 { return r.left }), alarms)
	for _, r := range rows {
		left.answers[r.id] = answer{r.left > limit, r.left}
	}
	check, err := wording(rows)
	if err != nil {
		return nil, err
	}
	return []*column{left, check}, nil
}

// asked is a classifier as it comes with the program, and what it takes for each text.
func asked(ctx context.Context, name string, bytes int64, of classify.Classifier, rows []row) (*column, error) {
	c := &column{name: name, version: of.Version(), licence: "Apache-2.0", bytes: bytes, ours: true, answers: map[string]answer{}}
	for _, r := range rows {
		start := time.Now()
		says, err := of.Classify(ctx, []string{r.text})
		if err != nil {
			return nil, fmt.Errorf("detectors: %s: %w", name, err)
		}
		c.milliseconds = append(c.milliseconds, time.Since(start).Seconds()*1000)
		c.answers[r.id] = answer{says[0].Flagged, says[0].P}
	}
	return c, nil
}

// wording is what `pellucid check` says of each description by its rules, without a model.
func wording(rows []row) (*column, error) {
	c := &column{name: "pellucid check, wording rules", licence: "Apache-2.0", ours: true, descriptions: true, answers: map[string]answer{}}
	for _, r := range rows {
		if r.sort != description {
			continue
		}
		dump := append([]byte(`{"initialize":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}},"tools/list":[{"tools":[{"name":"t","description":`), strictjson.AppendQuote(nil, r.text)...)
		start := time.Now()
		s, err := surface.ParseDump(append(dump, `,"inputSchema":{"type":"object"}}]}]}`...), surface.Limits{})
		if err != nil {
			return nil, fmt.Errorf("detectors: %s: %w", r.id, err)
		}
		flagged := s.Inspect(surface.Rules{}).Err() != nil || len(s.Lint()) > 0
		c.answers[r.id] = answer{flagged, math.NaN()}
		c.milliseconds = append(c.milliseconds, time.Since(start).Seconds()*1000)
	}
	return c, nil
}

// scores lists the scores of the rows that keep wants, in order.
func scores(rows []row, keep func(row) bool, score func(row) float64) (list []float64) {
	for _, r := range rows {
		if keep(r) {
			list = append(list, score(r))
		}
	}
	slices.Sort(list)
	return list
}
