// SPDX-License-Identifier: Apache-2.0

package surface

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// illustrated reports whether what comes is an example, or the thing that is fought.
func illustrated(before []word) bool {
	for i := len(before) - 1; i >= max(0, len(before)-4) && !before[i].ends; i-- {
		if compiled().discounts[before[i].text] {
			return true
		}
	}
	return false
}

// An element is one word of a pattern.
type element struct {
	words                    map[string]bool
	gap                      int
	opens, colon, tag, upper bool
	affirmed                 bool // no negation stands shortly before it
}

func (e *element) is(w *word) bool {
	return (e.words[w.text] || e.words[w.kind]) && (!e.opens || w.opens) && (!e.colon || w.colon) && (!e.tag || w.tag) && (!e.upper || w.upper)
}

type phrase []element

// match reports whether the phrase begins at the i-th word, and with which word it ends.
func (p phrase) match(words []word, i int) (last int, ok bool) {
	if !p[0].is(&words[i]) || p[0].affirmed && negated(words[:i]) {
		return 0, false
	}
	at := i
	for k := range p[1:] {
		e := &p[k+1]
		next := -1
		for i := at + 1; i <= at+1+e.gap && i < len(words) && !words[i-1].ends; i++ {
			if e.is(&words[i]) {
				next = i
				break
			}
		}
		if next < 0 {
			return 0, false
		}
		at = next
	}
	return at, true
}

// negated reports whether one of the three words before, in the same sentence, says no.
func negated(before []word) bool {
	for i := len(before) - 1; i >= max(0, len(before)-3) && !before[i].ends; i-- {
		if compiled().negations[before[i].text] {
			return true
		}
	}
	return false
}

// maxSpan is how many words the phrases of a rule may lie apart.
const maxSpan = 30

// A sighting is the last place of a phrase in a text.
type sighting struct {
	next                int // the number of its first word, counted from 1
	quoted, illustrated bool
}

type compiledRule struct {
	family  Family
	score   int
	phrases []int
}

// weigh returns ten times what the rule weighs if all of its phrases stand at the word from or behind it, and
// the first word of them.
func (r *compiledRule) weigh(seen map[int]sighting, from int) (weight, first int) {
	quoted, illustrated := true, false
	for k, n := range r.phrases {
		x := seen[n]
		if x.next <= from {
			return 0, 0
		}
		if k == 0 || x.next <= first {
			first = x.next - 1
		}
		quoted, illustrated = quoted && x.quoted, illustrated || x.illustrated
	}
	if quoted || illustrated {
		return r.score * 2, first
	}
	return r.score * 10, first
}

var compiled = sync.OnceValue(compileRules)

type ruleBook struct {
	phrases              []phrase
	rules                []compiledRule
	rulesOf              [][]int          // rules by phrase
	begin                map[string][]int // phrases by first word
	discounts, negations map[string]bool
}

// beginning returns the phrases that may begin with w.
func (book *ruleBook) beginning(w *word) []int {
	if w.kind == "" {
		return book.begin[w.text]
	}
	return slices.Concat(book.begin[w.text], book.begin[w.kind])
}

//go:embed wording.txt
var wordingRules string

func compileRules() ruleBook {
	book := ruleBook{begin: map[string][]int{}}
	sets, numbers := map[string]string{}, map[string]int{}
	for line := range strings.Lines(wordingRules) {
		head, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case strings.HasPrefix(head, "@"):
			_, sets[head[1:]], _ = strings.Cut(rest, "= ")
		case head != "" && head != "#":
			score, pattern, _ := strings.Cut(rest, " ")
			book.addRule(Family(head), score, pattern, sets, numbers)
		}
	}
	book.negations, book.discounts = wordSet(sets["no"]), wordSet(sets["illustrating"])
	return book
}

// addRule compiles a rule; numbers are those of the phrases so far.
func (book *ruleBook) addRule(f Family, score, pattern string, sets map[string]string, numbers map[string]int) {
	c := compiledRule{family: f}
	var err error
	if c.score, err = strconv.Atoi(score); err != nil {
		panic(err) // a test reads the file
	}
	for spelled := range strings.SplitSeq(pattern, " & ") {
		k, known := numbers[spelled]
		if !known {
			k = len(book.phrases)
			numbers[spelled] = k
			book.addPhrase(spelled, sets)
		}
		c.phrases = append(c.phrases, k)
		book.rulesOf[k] = append(book.rulesOf[k], len(book.rules))
	}
	book.rules = append(book.rules, c)
}

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// addPhrase compiles a phrase.
func (book *ruleBook) addPhrase(spelled string, sets map[string]string) {
	var p phrase
	gap := 0
	for f := range strings.FieldsSeq(spelled) {
		if g, err := strconv.Atoi(f); err == nil {
			gap = g
			continue
		}
		e := element{gap: gap}
		f, e.affirmed = strings.CutPrefix(f, "+")
		f, e.upper = strings.CutPrefix(f, "^")
		f, e.opens = strings.CutPrefix(f, "<")
		f, e.colon = strings.CutSuffix(f, ":")
		f, e.tag = strings.CutSuffix(f, ">")
		if set, ok := strings.CutPrefix(f, "@"); ok {
			f = sets[set]
		}
		e.words = wordSet(f)
		if p == nil {
			for w := range e.words {
				book.begin[w] = append(book.begin[w], len(book.phrases))
			}
		}
		p, gap = append(p, e), 0
	}
	book.phrases, book.rulesOf = append(book.phrases, p), append(book.rulesOf, nil)
}
