// SPDX-License-Identifier: Apache-2.0

// Package classifiers makes the classifiers that compiled rules name, each with its bounds, cache and circuit breaker.
package classifiers

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/deep"
	"github.com/pellucid-mcp/pellucid/boundary/classify/judge"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Set is the classifiers of one version of the rules.
type Set struct {
	rules  *rules.Rules
	byName map[string]*classifier
}

// A classifier is one of them with its bounds, its cache and its breaker, which outlive
// rules that say the same of it.
type classifier struct {
	member  *classify.Member
	Of      *rules.Classifier
	release func() // of the connections of a judge, otherwise nil
}

// New makes the classifiers of r, and takes over those of old that are the same.
func New(r *rules.Rules, old *Set) (*Set, error) {
	j := &Set{r, map[string]*classifier{}}
	for name, of := range r.Classifiers {
		if old != nil && old.byName[name] != nil && old.byName[name].Of.Equal(of) {
			j.byName[name] = old.byName[name]
			continue
		}
		s, err := open(of, rested)
		if err != nil {
			j.CloseAllBut(old)
			return nil, fmt.Errorf("classifier %s: %w", name, err)
		}
		j.byName[name] = s
	}
	return j, nil
}

// shadowShare is the share of the processors that the local model may take to watch what
// has been delivered: it must not hold up what is to be.
const shadowShare = 1.0 / 4

// rested has a model that watches and computes in this process pause for its share.
func rested(o *classify.Options) {
	if computes(o.Classifier) && o.Mode == policy.Shadow {
		o.Rest = max(0, float64(max(o.Concurrent, 1))/(shadowShare*float64(runtime.GOMAXPROCS(0)))-1)
	}
}

// computes reports whether a classifier takes the processors of this process.
func computes(c classify.Classifier) bool {
	switch c.(type) {
	case local.Classifier, deep.Cascade:
		return true
	}
	return false
}

// open makes one classifier. change may alter what the rules say of it.
func open(of *rules.Classifier, change ...func(*classify.Options)) (*classifier, error) {
	s := &classifier{Of: of}
	var c classify.Classifier
	var err error
	switch {
	case of.IsJudge():
		var e *llm.Endpoint
		if e, err = of.Endpoint(); err != nil {
			return nil, err
		}
		s.release = e.Close
		c, err = judge.New(judge.Options{Model: judgeModel{e}, Chars: of.Chars,
			// The model comes last: the others hold no space, so that no two are one.
			Name: strings.Join([]string{string(of.Format), of.URL, of.Model}, " ")})
	default:
		c, err = of.Service()
	}
	if err == nil {
		var cache classify.Cache
		if _, fast := c.(local.Classifier); !fast { // which is quicker than a cache
			cache = classify.NewRecent(0)
		}
		o := of.Options(c, cache)
		for _, f := range change {
			f(&o)
		}
		s.member, err = classify.New(o)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close lets go of idle connections.
func (s *classifier) Close() {
	if s.release != nil {
		s.release()
	}
}

// CloseAllBut lets go of what next does not use.
func (j *Set) CloseAllBut(next *Set) {
	if j == nil {
		return
	}
	for name, s := range j.byName {
		if next == nil || next.byName[name] != s {
			s.Close()
		}
	}
}

// Members are those for a tool of a server, or by default where there is no such server.
func (j *Set) Members(server, tool string) (list []*classify.Member) {
	names := j.rules.DefaultClassifiers()
	if s := j.rules.Server(server); s != nil {
		names = s.Tool(tool).Classifiers
	}
	for _, name := range names {
		list = append(list, j.byName[name].member)
	}
	return list
}

// Any are those for any tool of a server.
func (j *Set) Any(server string) (list []*classify.Member) {
	s := j.rules.Server(server)
	if s == nil {
		return j.Members(server, "")
	}
	for _, t := range s.All() {
		for _, name := range t.Classifiers {
			if m := j.byName[name].member; !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	return list
}

// Also are those for another kind of message of a server than the answers to calls.
func (j *Set) Also(server string, kind gateway.Elsewhere) (list []*classify.Member) {
	s := j.rules.Server(server)
	if s == nil {
		return nil
	}
	for _, name := range s.Also(kind) {
		list = append(list, j.byName[name].member)
	}
	return list
}

// RulesOr are the rules that j is of, or r where j is nil.
func (j *Set) RulesOr(r *rules.Rules) *rules.Rules {
	if j == nil {
		return r
	}
	return j.rules
}

// A judgeModel is a model without tools, asked once for each question.
type judgeModel struct{ client llm.Client }

var _ judge.Model = judgeModel{}

// maxJudgeAnswer bounds an answer in tokens: a line, behind what a model thinks before.
const maxJudgeAnswer = 2048

// Ask implements judge.Model.
func (m judgeModel) Ask(ctx context.Context, q judge.Question) (judge.Answer, error) {
	r, err := m.client.Complete(ctx, llm.Request{System: q.System, Messages: []llm.Message{{Text: q.User}}, MaxTokens: maxJudgeAnswer})
	if err != nil {
		return judge.Answer{}, err
	}
	return judge.Answer{Text: r.Text, Whole: r.Whole()}, nil
}
