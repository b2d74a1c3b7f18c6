// SPDX-License-Identifier: Apache-2.0

package classifiers

import (
	"context"
	"runtime"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// elsewhere is a classifier that does not compute in this process.
type elsewhere struct{}

func (elsewhere) Classify(context.Context, []string) ([]classify.Score, error) { return nil, nil }
func (elsewhere) Limits() classify.Limits                                      { return classify.Limits{} }
func (elsewhere) Version() string                                              { return "1" }

// TestRested: a model that watches and computes here has its share of the processors and
// no more, however many of its calls run at one time; nobody else is slowed down.
func TestRested(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // a share of two
	for _, tt := range []struct {
		what string
		o    classify.Options
		want float64
	}{
		{"one call has less than the share", classify.Options{Classifier: local.Classifier{}, Mode: policy.Shadow}, 0},
		{"as many calls as the share", classify.Options{Classifier: local.Classifier{}, Mode: policy.Shadow, Concurrent: 2}, 0},
		{"four times the share", classify.Options{Classifier: local.Classifier{}, Mode: policy.Shadow, Concurrent: 8}, 3},
		{"one that acts", classify.Options{Classifier: local.Classifier{}, Mode: policy.Enforce, Concurrent: 8}, 0},
		{"one elsewhere", classify.Options{Classifier: elsewhere{}, Mode: policy.Shadow, Concurrent: 8}, 0},
	} {
		if rested(&tt.o); tt.o.Rest != tt.want {
			t.Errorf("%s: rests %v times a call, want %v", tt.what, tt.o.Rest, tt.want)
		}
	}
}

// TestAny: a task whose tool is not known is judged by the classifiers of every tool, each once.
func TestAny(t *testing.T) {
	r, err := rules.Parse([]byte(`version: 1
servers:
  s: {url: "https://s.example", classify: [], tools: {read: {classify: [a]}, "get_*": {classify: [a, b]}}}
  none: {url: "https://n.example", classify: []}
classifiers:
  a: {provider: http, url: "https://a.example", model: m}
  b: {provider: http, url: "https://b.example", model: m}
`), rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j, err := New(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.CloseAllBut(nil)
	if got := j.Any("s"); len(got) != 2 || got[0] != j.Members("s", "read")[0] || got[1] != j.Members("s", "get_x")[1] {
		t.Errorf("%d members", len(got))
	}
	if got := j.Any("none"); len(got) != 0 {
		t.Errorf("%d members of none", len(got))
	}
}
