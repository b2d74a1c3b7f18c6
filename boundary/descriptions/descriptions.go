// SPDX-License-Identifier: Apache-2.0

// Package descriptions judges the titles, descriptions and instructions of a server with the rules of wording and a classifier.
//
// What is found is told to the operator and to the person who decides about the server. It
// rejects nothing: honest texts are flagged too, and many poisoned ones are not.
package descriptions

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// limit is the score from which a text is flagged whatever its words are. It is that high because honest
// descriptions that a model has not seen reach 0.97; below it the score only adds to what the rules find.
const limit = 0.98

// A Told is a text that the classifier takes for an order to a model, or for the description
// of an attack.
type Told struct {
	surface.Place
	Score float64
	Shown string // the part that scores highest, quoted and cut
}

// Findings are what was found in one item.
type Findings struct {
	Item    surface.Item
	Wording []surface.Warning // by the rules
	Told    []Told            // by the classifier
	Of      classify.Assessment
}

// Flagged reports whether anything was found.
func (v *Findings) Flagged() bool { return len(v.Wording) > 0 || len(v.Told) > 0 }

// Bounds of what is kept.
const (
	maxTold       = 16      // texts of one item that are told
	maxRemembered = 8192    // items
	maxBytes      = 8 << 20 // of those of them in which something was found

	judgementBytes = 56 // of one text
)

// A Judge judges items, and remembers the verdicts by the items' digests. It may be used at
// the same time.
type Judge struct {
	member  *classify.Member
	version string

	mu         sync.Mutex
	remembered map[surface.Digest]Findings
	bytes      int
}

// timeout bounds the questions about one item. The largest surface, 16 MiB, takes the model
// of the program about a second.
const timeout = 10 * time.Second

// New returns a Judge that asks the model which comes with the program.
func New() *Judge { return newJudge(local.Classifier{Model: local.Default()}) }

func newJudge(of classify.Classifier) *Judge {
	m, err := classify.New(classify.Options{Name: "local", Classifier: of, Mode: policy.Shadow, Fail: classify.FailOpen,
		Limit: limit, Timeout: timeout, Most: 16 << 20, Calls: 1_000_000})
	if err != nil {
		panic(err) // constants of this package
	}
	return &Judge{member: m, version: of.Version(), remembered: map[surface.Digest]Findings{}}
}

// Version is the classifier's.
func (j *Judge) Version() string { return j.version }

// Judge returns a verdict for each item in which something was found or that was not judged
// whole, in the order of the items.
func (j *Judge) Judge(ctx context.Context, items []surface.Item) (list []Findings) {
	for i := range items {
		v, known := j.recall(&items[i])
		if !known {
			v = j.one(ctx, &items[i])
			j.remember(v)
		}
		if v.Flagged() || v.Of.Reason != classify.Judged {
			list = append(list, v)
		}
	}
	return list
}

func (j *Judge) recall(it *surface.Item) (Findings, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v, known := j.remembered[it.Digest]
	v.Item = *it
	return v, known
}

// remember keeps a verdict without its item. A full memory is emptied: an item that is
// listed again is judged again then.
func (j *Judge) remember(v Findings) {
	if v.Of.Reason != classify.Judged {
		return
	}
	size, digest := 0, v.Item.Digest
	if v.Flagged() {
		size = sizeOf(&v)
		v.Item = surface.Item{}
	} else {
		v = Findings{} // of which nothing is said again
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.remembered) >= maxRemembered || j.bytes+size > maxBytes {
		clear(j.remembered)
		j.bytes = 0
	}
	if size <= maxBytes {
		j.remembered[digest] = v
		j.bytes += size
	}
}

// sizeOf is about how many bytes the verdict holds: the texts of warnings are parts of the item.
func sizeOf(v *Findings) int {
	n := len(v.Item.JSON) + len(v.Of.Segments)*judgementBytes
	for i := range v.Wording {
		n += 256 + len(v.Wording[i].Path) + len(v.Wording[i].Pointer)
	}
	for i := range v.Told {
		n += 256 + len(v.Told[i].Path) + len(v.Told[i].Pointer) + len(v.Told[i].Shown)
	}
	return n
}

// one judges an item.
func (j *Judge) one(ctx context.Context, it *surface.Item) Findings {
	v := Findings{Item: *it, Wording: it.Lint()}
	prose := it.Prose()
	segments := make([]classify.Segment, len(prose))
	var r scrub.Result
	for i := range prose {
		asModelsSee().Scrub(prose[i].Text, &r)
		segments[i].View = r.Clean.String()
	}
	v.Of = j.member.Judge(ctx, segments)
	for i := range v.Of.Segments {
		s := &v.Of.Segments[i]
		score := evidence(s.P, prose[i].Own)
		w, ok := prose[i].Lint(score)
		warned := slices.ContainsFunc(v.Wording, func(x surface.Warning) bool { return x.Place == w.Place })
		if ok && !warned && len(v.Wording) < surface.MaxWarnings {
			v.Wording = append(v.Wording, w)
		}
		if s.Flagged && len(v.Told) < maxTold {
			v.Told = append(v.Told, Told{prose[i].Place(), s.P, excerpt(segments[i].View)})
		}
		s.Flagged = s.Flagged || score > 0 && (ok || warned)
	}
	if v.Of.Reason == classify.Judged && !slices.ContainsFunc(v.Of.Segments, func(s classify.Judgement) bool { return s.Flagged }) {
		v.Of.Action = policy.Allow
	}
	return v
}

// evidence is what the classifier's score adds to the score of a text's words. Honest texts inside an
// item, such as the descriptions of parameters, have higher scores than those of the item itself.
func evidence(p float64, own bool) int {
	if !own {
		p -= 0.2
	}
	return max(0, int((p-0.15)*10))
}

// excerpt is the part of a text that the model of the program scores highest, for a person.
func excerpt(view string) string {
	s := local.Default().Score(view)
	return finding.Quote(view[s.Start:s.End])
}

// asModelsSee is the form of the texts that the model was trained on.
var asModelsSee = sync.OnceValue(func() *scrub.Scrubber {
	s, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP})
	if err != nil {
		panic(err) // a constant of this package
	}
	return s
})
