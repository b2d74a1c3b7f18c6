// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// CompareOptions names two builds of pellucid-lab and says how long to measure them.
type CompareOptions struct {
	There, Here []string      // the programs, with the arguments before the verb; There is the older one
	Name        string        // of There, for the table
	Rounds      int           // each program is measured once a round; 0 = 5
	Slice       time.Duration // how long each way runs in a round; 0 = 200 ms
	Progress    func(string)  // may be nil
}

// A Ratio is one figure of both programs, each beside a baseline of the same run.
type Ratio struct {
	Figure   string  `json:"figure"`
	Baseline string  `json:"baseline"`
	There    Spread  `json:"there"` // figure / baseline; less is better
	Here     Spread  `json:"here"`
	Change   float64 `json:"change"` // the median here / the median there; 0: one of them has no such figure
}

// A Spread is the least, the median and the largest of some values; all 0: there are none.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) (s Spread) {
	if len(values) == 0 {
		return s
	}
	slices.Sort(values)
	n := len(values)
	return Spread{values[0], (values[(n-1)/2] + values[n/2]) / 2, values[n-1]}
}

// Comparison is what [Compare] found.
type Comparison struct {
	There  string  `json:"there"` // name of the older program
	Rounds int     `json:"rounds"`
	Ratios []Ratio `json:"ratios"`
}

// Compare measures both programs in turns, so that what else the machine does falls on both
// alike. A figure counts only beside a baseline that the same program has measured in the same
// seconds: the machine's own speed is in both.
func Compare(ctx context.Context, o CompareOptions) (*Comparison, error) {
	if o.Rounds <= 0 {
		o.Rounds = 5
	}
	if o.Slice <= 0 {
		o.Slice = 200 * time.Millisecond
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	all := newSamples()
	for round := range o.Rounds {
		order := []bool{false, true} // there, then here
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, here := range order {
			program, side := o.There, o.Name
			if here {
				program, side = o.Here, "here"
			}
			o.Progress(fmt.Sprintf("round %d of %d, %s", round+1, o.Rounds, side))
			if err := all.measure(ctx, program, here, o.Slice); err != nil {
				return nil, fmt.Errorf("speed: %s: %w", side, err)
			}
		}
	}
	return &Comparison{There: o.Name, Rounds: o.Rounds, Ratios: all.ratios()}, nil
}

// figureName is a figure and what it is divided by.
type figureName struct{ figure, baseline string }

// samples are the ratios of all rounds.
type samples struct {
	order []figureName // as they came first
	there map[figureName][]float64
	here  map[figureName][]float64
}

func newSamples() *samples {
	return &samples{there: map[figureName][]float64{}, here: map[figureName][]float64{}}
}

func (s *samples) add(here bool, figure, baseline string, value, by float64) {
	if value <= 0 || by <= 0 {
		return // not measured: processor time is not known everywhere
	}
	name := figureName{figure, baseline}
	if s.there[name] == nil && s.here[name] == nil {
		s.order = append(s.order, name)
	}
	side := s.there
	if here {
		side = s.here
	}
	side[name] = append(side[name], value/by)
}

// measure runs one program once.
func (s *samples) measure(ctx context.Context, program []string, here bool, slice time.Duration) error {
	var gateway GatewayReport
	err := runVerb(ctx, program, &gateway, "gateway", "--json", "--rounds=1", "--slice="+slice.String(),
		"--sessions=1,8", "--bytes=128,1024,65536,1048576", "--events=0")
	if err != nil {
		return err
	}
	var scrub struct {
		Cases []Case `json:"cases"`
	}
	if err := runVerb(ctx, program, &scrub, "scrub", "--json", "--rounds=5"); err != nil {
		return err
	}
	s.addGateway(here, &gateway)
	s.addScrub(here, scrub.Cases)
	return nil
}

// addGateway adds what a call costs with all checks beside a proxy without any.
func (s *samples) addGateway(here bool, r *GatewayReport) {
	baselines := map[string]string{"http": "ReverseProxy", "stdio": "a process that copies"}
	for _, f := range r.Figures {
		if f.Way != checks || f.Script != scripts[0] {
			continue
		}
		base := r.find(f, reverse)
		beside := baselines[f.Transport]
		at := f.Transport + ", " + sizeName(f.Bytes)
		if f.Sessions == 1 {
			s.add(here, at+": p50 of a call", beside, f.P50, base.P50)
			s.add(here, at+": processor time of a call", beside, f.CPU, base.CPU)
		} else {
			s.add(here, fmt.Sprintf("%s, %d sessions: time of a call", at, f.Sessions), beside, base.Rate, f.Rate)
		}
	}
}

// addScrub adds what a field of a usual text costs beside a copy of its bytes.
func (s *samples) addScrub(here bool, list []Case) {
	for _, c := range list {
		text, way, _ := strings.Cut(c.Name, "/")
		if (way == "mcp" || way == "faithful") && !strings.HasPrefix(text, "worst-") {
			s.add(here, "scrub, "+c.Name, "memcpy", c.MemcpyRatio, 1)
		}
	}
}

func (s *samples) ratios() (list []Ratio) {
	for _, name := range s.order {
		r := Ratio{Figure: name.figure, Baseline: name.baseline, There: spreadOf(s.there[name]), Here: spreadOf(s.here[name])}
		if r.There.Median > 0 {
			r.Change = r.Here.Median / r.There.Median
		}
		list = append(list, r)
	}
	return list
}

// runVerb runs "PROGRAM VERB FLAG…", and reads the JSON that it prints. The older program may
// print members that this one does not know.
func runVerb(ctx context.Context, program []string, into any, args ...string) error {
	cmd := exec.CommandContext(ctx, program[0], append(program[1:len(program):len(program)], args...)...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	} else if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}

// Worse returns the figures whose ratio here is more than limit times the ratio there.
func (c *Comparison) Worse(limit float64) (names []string) {
	for _, r := range c.Ratios {
		if r.Change > limit {
			names = append(names, r.Figure)
		}
	}
	return names
}

// Print writes the ratios as a table for a person.
func (c *Comparison) Print(dst io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(dst)
	fmt.Fprintf(w, "%s\n", p.Bold(fmt.Sprintf("%-42s %-22s %-22s %-22s %s", "figure (min/median/max of "+terminal.Plural(c.Rounds, "round")+")", "baseline", "ratio at "+c.There, "ratio here", "change")))
	for _, r := range c.Ratios {
		change := "only on one side"
		if r.There.Median > 0 && r.Here.Median > 0 {
			change = fmt.Sprintf("%.2f", r.Change)
		}
		fmt.Fprintf(w, "%-42s %-22s %-22s %-22s %s\n", r.Figure, r.Baseline, r.There, r.Here, change)
	}
	return w.Flush()
}

func (s Spread) String() string {
	if s == (Spread{}) {
		return "-"
	}
	return fmt.Sprintf("%.2f/%.2f/%.2f", s.Min, s.Median, s.Max)
}
