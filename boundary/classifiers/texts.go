// SPDX-License-Identifier: Apache-2.0

package classifiers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Texts judges texts for a person or a program that waits.
type Texts struct {
	view *scrub.Scrubber
	res  scrub.Result
	list []*classifier
}

// An UnknownError says that the rules have no classifier of that name.
type UnknownError struct {
	name  string
	known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no classifier %s; there are %v", finding.Quote(e.name), e.known)
}

// OpenTexts makes the classifiers of r that have the names, for texts of at most that many
// characters.
func OpenTexts(r *rules.Rules, names []string, most int) (*Texts, error) {
	view, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP, MaxChars: most})
	if err != nil {
		return nil, err
	}
	b := &Texts{view: view}
	for _, name := range names {
		of := r.Classifiers[name]
		if of == nil {
			b.Close()
			return nil, &UnknownError{name, slices.Sorted(maps.Keys(r.Classifiers))}
		}
		s, err := open(of, func(o *classify.Options) { o.Most = most })
		if err != nil {
			b.Close()
			return nil, fmt.Errorf("classifier %s: %w", name, err)
		}
		b.list = append(b.list, s)
	}
	return b, nil
}

// Close ends the classifiers.
func (b *Texts) Close() {
	for _, s := range b.list {
		s.Close()
	}
}

// Patience with a classifier whose calls a minute are used up.
const (
	paceStep = time.Second
	paceMost = 90
)

// Judge asks every classifier, in the order of the names, and waits for one whose calls a
// minute are used up.
func (b *Texts) Judge(text string) []classify.Assessment {
	b.view.Scrub(text, &b.res)
	segments := []classify.Segment{{View: b.res.Clean.String(), Raw: text}}
	out := make([]classify.Assessment, len(b.list))
	for i, s := range b.list {
		for n := range paceMost {
			out[i] = s.member.Judge(context.Background(), segments)
			if out[i].Reason != classify.OverBudget || s.Of.DailyChars > 0 || n+1 == paceMost {
				break
			}
			time.Sleep(paceStep)
		}
	}
	return out
}

// Row judges the text of a row, and adds what was found to it.
func (b *Texts) Row(row, text strictjson.Value, e *strictjson.Edits) error {
	list := b.Judge(text.Text())
	set := func(name string, raw []byte) {
		if old := row.Get(name); old.Exists() {
			e.Replace(old, raw)
		} else {
			e.Append(row, name, raw)
		}
	}
	r := NewReport(list)
	scores := []byte{'{'}
	for i, v := range list {
		if i > 0 {
			scores = append(scores, ',')
		}
		scores = append(strictjson.AppendQuote(scores, v.Name), ':')
		scores = appendScore(scores, v.P)
		if v.Deep > 0 {
			scores = appendScore(append(strictjson.AppendQuote(append(scores, ','), v.Name+".fast"), ':'), v.Fast)
			scores = appendScore(append(strictjson.AppendQuote(append(scores, ','), v.Name+".deep"), ':'), v.Deep)
		}
		if v.Sentence != "" {
			set("sentence", strictjson.AppendQuote(nil, quoted(v.Sentence)))
		}
	}
	set("score", appendScore(nil, r.Score))
	set("flagged", strconv.AppendBool(nil, r.Flagged))
	set("scores", append(scores, '}'))
	return Unjudged(list)
}

func appendScore(dst []byte, p float64) []byte { return strconv.AppendFloat(dst, p, 'g', 4, 64) }
