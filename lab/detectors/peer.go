// SPDX-License-Identifier: Apache-2.0

package detectors

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

const (
	// slowest is how long a detector may take for one text, and longer for the first: it loads a model.
	slowest = 60 * time.Second
	// fewest answers make a figure; a detector that gave fewer has none.
	fewest = 300
	// longestAnswer bounds a line of a detector's.
	longestAnswer = 64 << 10
)

// A column is a detector, and what it says of the texts.
type column struct {
	name, version, licence string
	bytes                  int64
	ours                   bool
	descriptions           bool // judges nothing but descriptions
	answers                map[string]answer
	milliseconds           []float64 // of CPU, by text
	stopped                string    // why it has not judged all texts
}

// An answer is what a detector says of one text.
type answer struct {
	flagged bool
	score   float64 // NaN: it gives none
}

// scored reports whether the detector gives scores.
func (c *column) scored() bool {
	for _, v := range c.answers {
		if math.IsNaN(v.score) {
			return false
		}
	}
	return len(c.answers) > 0
}

func fields(commands ...string) (args []string) {
	for _, c := range commands {
		args = append(args, strings.Fields(c)...)
	}
	return args
}

func wanted(only []string, name string) bool { return len(only) == 0 || slices.Contains(only, name) }

// names asks the program which detectors it runs.
func (c cage) names(ctx context.Context) ([]string, error) {
	p, err := c.start()
	if err != nil {
		return nil, fmt.Errorf("detectors: %w", err)
	}
	defer p.Stdout.Close()
	stop := watch(ctx, p, c.slowest)
	defer stop()
	var names []string
	for s := bufio.NewScanner(p.Stdout); s.Scan(); {
		if name := s.Text(); name != "" && len(name) <= 64 && finding.Quote(name) == `"`+name+`"` {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("detectors: %s lists no detector: %s", finding.Quote(strings.Join(c.args, " ")), p.Exit())
	}
	return names, nil
}

// watch ends the process when ctx does or after d, and when the returned function is called.
func watch(ctx context.Context, p *child.Process, d time.Duration) (stop func()) {
	ctx, cancel := context.WithTimeout(ctx, d)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		p.Stop(ctx)
	}()
	return func() { cancel(); <-ended }
}

// ask runs a detector over the texts, for the longest time at most. A detector that fails
// is a column that says so.
func (c cage) ask(ctx context.Context, name string, rows []row, longest time.Duration) *column {
	col := &column{name: name, answers: map[string]answer{}}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	p, err := c.start(name)
	if err != nil {
		col.stopped = "does not start"
		return col
	}
	defer p.Stdout.Close()
	defer watch(ctx, p, longest)()
	var late atomic.Bool
	slow := time.AfterFunc(c.slowest, func() { late.Store(true); p.Stop(expired()) })
	defer slow.Stop()
	if err := col.converse(p, rows, func() { slow.Reset(c.slowest) }); err != nil {
		switch {
		case ctx.Err() != nil:
			col.stopped = fmt.Sprintf("stopped after %v", longest)
		case late.Load():
			col.stopped = fmt.Sprintf("took more than %v for a text", c.slowest)
		default:
			col.stopped = err.Error()
		}
	}
	return col
}

// expired is a context that waits for nothing.
func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

var errAnswer = errors.New("gave an answer that cannot be read")

// converse sends text after text and reads the answers. answered is called at each.
func (c *column) converse(p *child.Process, rows []row, answered func()) error {
	lines := bufio.NewScanner(p.Stdout)
	lines.Buffer(nil, longestAnswer)
	next := func(into any) error {
		if !lines.Scan() {
			return errors.New("ended")
		}
		answered()
		if json.Unmarshal(lines.Bytes(), into) != nil {
			return errAnswer
		}
		return nil
	}
	var about struct {
		Name, Version, Licence string
		Bytes                  int64
	}
	if err := next(&about); err != nil {
		return err
	}
	c.version, c.licence, c.bytes = label(about.Version), label(about.Licence), about.Bytes
	send := json.NewEncoder(p.Stdin)
	for _, r := range rows {
		if err := send.Encode(r.text); err != nil {
			return errors.New("takes no more texts")
		}
		var says struct {
			Flagged *bool
			Score   *float64
			MS      float64
		}
		if err := next(&says); err != nil {
			return err
		}
		if says.Flagged == nil {
			return errAnswer
		}
		v := answer{*says.Flagged, math.NaN()}
		if says.Score != nil {
			v.score = *says.Score
		}
		c.answers[r.id] = v
		c.milliseconds = append(c.milliseconds, says.MS)
	}
	return nil
}

// label is what a package says of itself, as a cell of a table can hold it.
func label(s string) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() == 40 {
			break
		}
		if r == ' ' || r == '.' || r == '-' || r == '+' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			b.WriteRune(r)
		}
	}
	return b.String()
}
