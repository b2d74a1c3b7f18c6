// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/judge"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A jury is the classifiers of one version of the rules.
type jury struct {
	rules *rules.Rules
	seats map[string]*seat
}

// A seat is one classifier with its bounds, its cache and its breaker, which outlive
// rules that say the same of it.
type seat struct {
	of       *rules.Classifier
	member   *classify.Member
	endpoint *llm.Endpoint // of a judge; nil: it is none
}

// newJury makes the classifiers of r, and takes over those of old that are the same.
func newJury(r *rules.Rules, old *jury) (*jury, error) {
	j := &jury{r, map[string]*seat{}}
	for name, of := range r.Classifiers {
		if old != nil && old.seats[name] != nil && old.seats[name].of.Equal(of) {
			j.seats[name] = old.seats[name]
			continue
		}
		s, err := newSeat(of, rested)
		if err != nil {
			j.closeAllBut(old)
			return nil, fmt.Errorf("classifier %s: %w", name, err)
		}
		j.seats[name] = s
	}
	return j, nil
}

// shadowShare is the share of the processors that the local model may take to watch what
// has been delivered: it must not hold up what is to be.
const shadowShare = 1.0 / 4

// rested has a model that watches and computes in this process pause for its share.
func rested(o *classify.Options) {
	if _, here := o.Classifier.(local.Classifier); here && o.Mode == classify.Shadow {
		o.Rest = max(0, float64(max(o.Concurrent, 1))/(shadowShare*float64(runtime.GOMAXPROCS(0)))-1)
	}
}

func newSeat(of *rules.Classifier, change ...func(*classify.Options)) (*seat, error) {
	s := &seat{of: of}
	var c classify.Classifier
	var err error
	if of.IsJudge() {
		if s.endpoint, err = of.Endpoint(); err != nil {
			return nil, err
		}
		c, err = judge.New(judge.Options{Model: judgeModel{s.endpoint}, Chars: of.Chars,
			// The model comes last: the others hold no space, so that no two are one.
			Name: strings.Join([]string{string(of.Format), of.URL, of.Model}, " ")})
	} else {
		c, err = of.Service()
	}
	if err == nil {
		var cache classify.Cache
		if of.Provider != rules.Local { // which is quicker than a cache
			cache = classify.NewRecent(0)
		}
		o := of.Options(c, cache)
		for _, f := range change {
			f(&o)
		}
		s.member, err = classify.New(o)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *seat) close() {
	if s.endpoint != nil {
		s.endpoint.Close()
	}
}

// closeAllBut lets go of what next does not use.
func (j *jury) closeAllBut(next *jury) {
	if j == nil {
		return
	}
	for name, s := range j.seats {
		if next == nil || next.seats[name] != s {
			s.close()
		}
	}
}

// members are those for a tool of a server, or by default where there is no such server.
func (j *jury) members(server, tool string) (list []*classify.Member) {
	names := j.rules.DefaultClassifiers()
	if s := j.rules.Server(server); s != nil {
		names = s.Tool(tool).Classifiers
	}
	for _, name := range names {
		list = append(list, j.seats[name].member)
	}
	return list
}

// rulesOr are the rules that j is of, or r where there is no jury yet.
func (j *jury) rulesOr(r *rules.Rules) *rules.Rules {
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
