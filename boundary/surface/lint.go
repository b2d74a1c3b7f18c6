// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A Family is a kind of wording that manipulates an agent. wording.txt has them all.
type Family string

// pretence is the family of text that pretends to be the system's.
const pretence Family = "pretended-system-text"

// A Warning is a text that is worded as manipulation often is. It is advice for a
// person and rejects nothing: honest text can be worded so, and an attack need not.
type Warning struct {
	Place
	Family Family // the one that weighs most
	Score  int
	text   string // third-party text, for Shown
}

// Shown is the beginning of what stands there, for a person.
func (w Warning) Shown() string { return finding.Quote(w.text) }

// Lint looks at the wording of every text of the surface, without a model.
func (s *Surface) Lint() []Warning {
	var out []Warning
	for i := range s.items {
		out = append(out, s.items[i].Lint()...)
	}
	return out
}

// MaxWarnings bounds the warnings about one item: it needs a look after the first one.
const MaxWarnings = 64

// Lint looks at the wording of every text of the item, without a model. It returns at most
// MaxWarnings.
func (it *Item) Lint() []Warning {
	var out []Warning
	it.eachText(func(v strictjson.Value, t *trail, isName bool) {
		if len(out) == MaxWarnings {
			return
		}
		text := v.Text()
		if inner, form := insideDataURI(text); form == textInside {
			text = strings.Join(inner, "\n")
		}
		if len(text) < minWording {
			return
		}
		if r := readWording(text); r.warns(0) {
			out = append(out, Warning{t.place(it.Key, isName), r.family, r.score, text[r.at:]})
		}
	})
	return out
}

// Lint reports whether the wording of the text is worth a warning only because of the evidence beside it.
func (x *Prose) Lint(evidence int) (Warning, bool) {
	r := readWording(x.Text)
	return Warning{x.Place(), r.family, r.score, x.Text[r.at:]}, r.score >= minEvidence && !r.warns(0) && r.warns(evidence)
}

// minWording is shorter than any text that could tell an agent anything.
const minWording = 8

// A text of at most shortText words is warned of from a lower score: a long one has more chances to score.
const (
	threshold      = 10
	shortThreshold = 8
	shortText      = 60
)

// minEvidence is the least score of a text that is warned of because of other evidence.
const minEvidence = 3

// maxPassage is how many words the phrases lie apart that count together.
const maxPassage = 40

// A reading is what the rules make of a text.
type reading struct {
	score  int
	family Family // the one that weighs most
	at     int    // byte of the text where its words begin
	least  int    // the score from which a text of this length is worth a warning
}

// warns reports whether the text is worth a warning; evidence is what speaks for one beside its words.
func (r *reading) warns(evidence int) bool { return r.score+evidence >= r.least }

// readWording adds up what each family's strongest rule weighs in one passage of the text; the heaviest passage counts.
func readWording(text string) (r reading) {
	words, book := split(text), compiled()
	r.least = threshold
	if len(words) <= shortText {
		r.least = shortThreshold
	}
	seen, passage := map[int]sighting{}, map[Family]weighed{}
	sentence := 0
	for i := range words {
		if i > 0 && words[i-1].ends || words[i].opens && words[i].colon {
			sentence = i
		}
		for _, n := range book.beginning(&words[i]) {
			last, ok := book.phrases[n].match(words, i)
			if !ok {
				continue
			}
			seen[n] = sighting{i + 1, words[i].quoted && words[last].quoted, illustrated(words[:i])}
			for _, k := range book.rulesOf[n] {
				rule := &book.rules[k]
				weight, first := rule.weigh(seen, max(sentence, i-maxSpan))
				if old := passage[rule.family]; weight == 0 || weight < old.weight && i-old.first <= maxPassage {
					continue
				}
				passage[rule.family] = weighed{weight, first}
				if sum, heaviest := passageScore(passage, i); sum > r.score {
					r.score, r.family, r.at = sum, heaviest, words[passage[heaviest].first].at
				}
			}
		}
	}
	if r.score /= 10; !r.warns(0) && scrubbed(text) > 0 {
		r.score, r.family, r.at = threshold, pretence, 0
	}
	return r
}

// weighed is a rule that holds: ten times its weight, and the first of its words.
type weighed struct{ weight, first int }

// passageScore adds up what was found in the maxPassage words before the i-th.
func passageScore(passage map[Family]weighed, i int) (sum int, heaviest Family) {
	top := weighed{}
	for f, w := range passage {
		if i-w.first > maxPassage {
			continue
		}
		sum += w.weight
		if w.weight > top.weight || w.weight == top.weight && w.first < top.first {
			top, heaviest = w, f
		}
	}
	return sum, heaviest
}

// scrubbed counts the chat templates' own tokens.
func scrubbed(text string) int {
	if !strings.ContainsAny(text, ucd.OpenerSet) && isASCII(text) {
		return 0
	}
	var r scrub.Result
	tokens().Scrub(text, &r)
	n := 0
	for _, e := range r.Edits {
		if e.Class == scrub.ControlToken {
			n++
		}
	}
	// Source code and regular expressions hold this one honestly; what a server says
	// of itself does not.
	return n + strings.Count(r.Clean.String(), "[INST]")
}

var tokens = compileOnce(scrub.Policy{Profile: scrub.Faithful})
