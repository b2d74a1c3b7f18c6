// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Question is what the grounding adapter is asked.
const Question = "Lightning never strikes the same place twice"

// Grounded is what the grounding adapter answered from its demonstration set.
type Grounded struct {
	Claim        string
	Verdict      string
	Validators   int
	Disagreement bool
	Said         []Said
	Recorded     int   // changes of texts that _meta tells of
	Err          error // nil: all is as it should be
}

// Said is one attestation: what its validator wrote, and what a model is given.
type Said struct {
	Verdict, Validator string
	Before, After      string // the rationale
	Quote, Source      string
}

// Ground starts `self ground serve` without a store, asks it the Question and holds
// the answer to what the demonstration set says.
func Ground(ctx context.Context, self string) (*Grounded, error) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	dir, err := os.MkdirTemp("", "pellucid-demo-")
	if err != nil {
		return nil, fmt.Errorf("demo: make state directory: %w", err)
	}
	defer os.RemoveAll(dir)
	s, err := connect(ctx, dir, []string{self, "ground", "serve", "--stdio"})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "ground", Arguments: map[string]any{"query": Question}})
	if err != nil {
		return nil, fmt.Errorf("demo: call ground: %w", err)
	}
	key, err := installKey(dir)
	if err != nil {
		return nil, err
	}
	g := new(Grounded)
	if g.Err = fencedTwice(r, key.Open); g.Err == nil {
		g.Err = g.read(r.StructuredContent)
	}
	return g, nil
}

// fencedTwice wants the answer as structured content, and the same in a fence.
func fencedTwice(r *mcp.CallToolResult, open func(string, frame.Origin) (frame.Origin, string, error)) error {
	if r.IsError || len(r.Content) != 1 {
		return errors.New("the adapter did not answer")
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		return errors.New("the answer is no text")
	}
	_, body, err := open(text.Text, frame.Origin{})
	if err != nil {
		return err
	}
	var fenced any
	if err := json.Unmarshal([]byte(body), &fenced); err != nil || !reflect.DeepEqual(fenced, r.StructuredContent) {
		return errors.New("the fence holds another answer than the structured content")
	}
	return nil
}

func (g *Grounded) read(structured any) error {
	raw, err := json.Marshal(structured)
	if err != nil {
		return err
	}
	a, err := ground.ParseAnswer(raw)
	if err != nil || a.Meta.Claim == nil {
		return errors.New("the answer is not on the claim")
	}
	g.Claim, g.Verdict = a.Meta.Claim.Text.Claim, string(a.Summary.Verdict)
	g.Validators, g.Disagreement = a.Summary.Validators, a.Summary.Disagreement
	g.Recorded = len(a.Meta.Replaced) + len(a.Meta.Stripped)
	wrote := rationales()
	for i := range a.Attestations {
		t := &a.Attestations[i]
		if t.Text.Type != "veritas:UntrustedValidatorText" || t.Text.Warning == "" {
			return errors.New("a text stands without its frame")
		}
		said := Said{Verdict: string(t.Verdict), Validator: t.Validator, Before: wrote[t.Validator+g.Claim], After: t.Text.Rationale}
		if len(t.Text.Evidence) > 0 {
			said.Quote, said.Source = t.Text.Evidence[0].Quote.Quote, t.Text.Evidence[0].Quote.Source
		}
		g.Said = append(g.Said, said)
	}
	if g.Verdict != "FALSE" || g.Validators != 2 || len(g.Said) != 2 || g.Recorded == 0 {
		return errors.New("the verdict is not what the demonstration set says")
	}
	return nil
}

// rationales are those of the demonstration set, by validator and claim.
func rationales() map[string]string {
	out := map[string]string{}
	for _, doc := range demonstration.Attestations() {
		var a struct {
			Validator string `json:"validator_did"`
			Rationale string `json:"rationale"`
			Claim     struct {
				Text string `json:"text"`
			} `json:"claim"`
		}
		if json.Unmarshal(doc, &a) == nil {
			out[a.Validator+a.Claim.Text] = a.Rationale
		}
	}
	return out
}
