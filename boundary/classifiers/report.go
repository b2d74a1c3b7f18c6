// SPDX-License-Identifier: Apache-2.0

package classifiers

import (
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Unjudged says which classifiers have not judged all of a text, and why.
func Unjudged(list []classify.Assessment) error {
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

// A Report is the verdicts on a text, for a program.
type Report struct {
	Score   float64 `json:"score"` // the highest
	Flagged bool    `json:"flagged"`
	Entries []Entry `json:"verdicts"`
}

// An Entry is that of one classifier.
type Entry struct {
	Name         string  `json:"name"`
	Version      string  `json:"version"`
	Score        float64 `json:"score"`
	Flagged      bool    `json:"flagged"`
	Fast         float64 `json:"fast,omitempty"` // what the score of two models is made of
	Deep         float64 `json:"deep,omitempty"`
	Sentence     string  `json:"sentence,omitempty"` // of the text, that has rung
	Code         string  `json:"code,omitempty"`
	Reason       string  `json:"reason,omitempty"` // why it was not judged
	Asked        int     `json:"asked"`
	Cached       int     `json:"cached"`
	Microseconds int64   `json:"microseconds"`
}

// NewReport makes it of the verdicts.
func NewReport(list []classify.Assessment) *Report {
	r := &Report{Entries: []Entry{}}
	for _, v := range list {
		r.Score, r.Flagged = max(r.Score, v.P), r.Flagged || v.Flagged()
		r.Entries = append(r.Entries, Entry{Name: v.Name, Version: v.Version, Score: v.P, Flagged: v.Flagged(),
			Fast: v.Fast, Deep: v.Deep, Sentence: quoted(v.Sentence), Code: string(v.Code), Reason: string(v.Reason), Asked: v.Asked, Cached: v.Cached, Microseconds: v.Latency.Microseconds()})
	}
	return r
}

// quoted is a sentence of a text for a person; "" stays what it is.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return finding.Quote(s)
}

// PrintAssessments writes a line for each verdict, for a person.
func PrintAssessments(w io.Writer, list []classify.Assessment) error {
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
		if v.Deep > 0 {
			says += fmt.Sprintf(", fast %.4f, deep %.4f", v.Fast, v.Deep)
		}
		if v.Sentence != "" {
			says += ": " + quoted(v.Sentence)
		}
		if _, err := fmt.Fprintf(w, "%.4f  %s  %s %s\n", v.P, says, v.Name, v.Version); err != nil {
			return err
		}
	}
	return nil
}
