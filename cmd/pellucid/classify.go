// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/classifiers"
	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

type classifyCmd struct {
	With   []string `default:"local" placeholder:"NAME,…" help:"Classifiers of the configuration; local is the model that comes with the program, and the default."`
	Config string   `short:"c" placeholder:"FILE" completion:"files" help:"Configuration that says what the names are (default: pellucid.yaml here, if another name than local is wanted)."`
	JSON   bool     `name:"json" xor:"form" help:"Print the verdicts as JSON."`
	JSONL  bool     `name:"jsonl" xor:"form" help:"Read JSON lines and print them with a member \"score\", of the text under --key."`
	Key    string   `default:"text" placeholder:"NAME" help:"The member that --jsonl has judged."`
	File   string   `arg:"" optional:"" completion:"files" help:"The text; standard input if absent or -."`
}

func (classifyCmd) Help() string {
	return `Says how much a text looks like an injection, from 0 to 1, as classifiers see it: the
text is normalised first, as the gateway does it. A row of --jsonl gains "score", the
highest; "flagged", whether one of them flags it; and "scores", by name. A low score
says little: docs/spec/classify.md says what a classifier can and cannot do. Exit codes:
0 judged, also where it is flagged; 1 the input cannot be read, or was not judged (a row
then has a member "error"); 2 wrong usage; 3 bad configuration.`
}

func (c *classifyCmd) Run(e *env) error {
	bench, err := c.open(e)
	if err != nil {
		return err
	}
	defer bench.close()
	if c.JSONL {
		return terminal.EditRows(e.Stdout, e.Stdin, terminal.RowOptions{File: c.File, Key: c.Key, Verb: "classify", Done: "judged"}, bench.row)
	}
	b, err := terminal.ReadInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("classify: %w", err)
	}
	list := bench.judge(string(b))
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, newClassifyReport(list))
	} else {
		err = printVerdicts(e.Stdout, list)
	}
	if err != nil {
		return fmt.Errorf("classify: write: %w", err)
	}
	return unjudged(list)
}

// rules are those of the configuration, or of one that says nothing.
func (c *classifyCmd) rules(e *env) (*rules.Rules, error) {
	if c.Config == "" {
		return rules.Parse([]byte("version: 1\n"), rules.Options{})
	}
	path, err := filepath.Abs(c.Config)
	if err != nil {
		return nil, err
	}
	return rules.Load(path, e.references())
}

// open makes the classifiers that are wanted.
func (c *classifyCmd) open(e *env) (*classifying, error) {
	if c.Config == "" && slices.ContainsFunc(c.With, func(name string) bool { return name != rules.Local }) {
		if _, err := os.Stat(app.DefaultFile); err != nil {
			return nil, exit.With(exit.Usage, errors.New("classify: --with needs a configuration: -c FILE"))
		}
		c.Config = app.DefaultFile
	}
	r, err := c.rules(e)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("classify: %w", err))
	}
	of := r.Classifiers
	view, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP, MaxChars: terminal.MaxInput})
	if err != nil {
		return nil, fmt.Errorf("classify: %w", err)
	}
	b := &classifying{view: view}
	for _, name := range c.With {
		if of[name] == nil {
			b.close()
			return nil, exit.With(exit.Usage, fmt.Errorf("classify: no classifier %s; there are %v", finding.Quote(name), slices.Sorted(maps.Keys(of))))
		}
		s, err := classifiers.Open(of[name], func(o *classify.Options) { o.Most = terminal.MaxInput })
		if err != nil {
			b.close()
			return nil, exit.With(exit.Config, fmt.Errorf("classify: classifier %s: %w", name, err))
		}
		b.seats = append(b.seats, s)
	}
	return b, nil
}

// A classifying judges texts for a person or a program that waits.
type classifying struct {
	view  *scrub.Scrubber
	res   scrub.Result
	seats []*classifiers.Classifier
}

func (b *classifying) close() {
	for _, s := range b.seats {
		s.Close()
	}
}

// Patience with a classifier whose calls a minute are used up.
const (
	paceStep = time.Second
	paceMost = 90
)

func (b *classifying) judge(text string) []classify.Verdict {
	b.view.Scrub(text, &b.res)
	segments := []classify.Segment{{View: b.res.Clean.String(), Raw: text}}
	out := make([]classify.Verdict, len(b.seats))
	for i, s := range b.seats {
		for n := range paceMost {
			out[i] = s.Member.Judge(context.Background(), segments)
			if out[i].Reason != classify.OverBudget || s.Of.DailyChars > 0 || n+1 == paceMost {
				break
			}
			time.Sleep(paceStep)
		}
	}
	return out
}

// row judges the text of a row, and adds what was found to it.
func (b *classifying) row(row, text strictjson.Value, e *strictjson.Edits) error {
	list := b.judge(text.Text())
	set := func(name string, raw []byte) {
		if old := row.Get(name); old.Exists() {
			e.Replace(old, raw)
		} else {
			e.Append(row, name, raw)
		}
	}
	r := newClassifyReport(list)
	scores := []byte{'{'}
	for i, v := range list {
		if i > 0 {
			scores = append(scores, ',')
		}
		scores = append(strictjson.AppendQuote(scores, v.Name), ':')
		scores = appendScore(scores, v.P)
	}
	set("score", appendScore(nil, r.Score))
	set("flagged", strconv.AppendBool(nil, r.Flagged))
	set("scores", append(scores, '}'))
	return unjudged(list)
}

func appendScore(dst []byte, p float64) []byte { return strconv.AppendFloat(dst, p, 'g', 4, 64) }

// unjudged says which classifiers have not judged all of a text, and why.
func unjudged(list []classify.Verdict) error {
	var errs []error
	for _, v := range list {
		switch {
		case v.Reason == classify.Judged:
		case v.Err != nil:
			errs = append(errs, fmt.Errorf("classify: %s has not judged it: %s: %w", v.Name, v.Reason, v.Err))
		default:
			errs = append(errs, fmt.Errorf("classify: %s has not judged it: %s", v.Name, v.Reason))
		}
	}
	return errors.Join(errs...)
}

// A classifyReport is what --json prints.
type classifyReport struct {
	Score    float64         `json:"score"` // the highest
	Flagged  bool            `json:"flagged"`
	Verdicts []verdictReport `json:"verdicts"`
}

type verdictReport struct {
	Name         string  `json:"name"`
	Version      string  `json:"version"`
	Score        float64 `json:"score"`
	Flagged      bool    `json:"flagged"`
	Code         string  `json:"code,omitempty"`
	Reason       string  `json:"reason,omitempty"` // why it was not judged
	Asked        int     `json:"asked"`
	Cached       int     `json:"cached"`
	Microseconds int64   `json:"microseconds"`
}

func newClassifyReport(list []classify.Verdict) *classifyReport {
	r := &classifyReport{Verdicts: []verdictReport{}}
	for _, v := range list {
		r.Score, r.Flagged = max(r.Score, v.P), r.Flagged || v.Flagged()
		r.Verdicts = append(r.Verdicts, verdictReport{Name: v.Name, Version: v.Version, Score: v.P, Flagged: v.Flagged(),
			Code: string(v.Code), Reason: string(v.Reason), Asked: v.Asked, Cached: v.Cached, Microseconds: v.Latency.Microseconds()})
	}
	return r
}

func printVerdicts(w io.Writer, list []classify.Verdict) error {
	for _, v := range list {
		says := "not flagged"
		switch {
		case v.Flagged():
			says = "flagged"
		case v.Reason != classify.Judged:
			says = "not judged: " + string(v.Reason)
		}
		if v.Code != "" {
			says += " (" + string(v.Code) + ")"
		}
		if _, err := fmt.Fprintf(w, "%.4f  %s  %s %s\n", v.P, says, v.Name, v.Version); err != nil {
			return err
		}
	}
	return nil
}
