// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// DefaultTheta is how similar free text has to be, in thousandths.
const DefaultTheta = 400

// Recurs reports whether candidate is target again: the same tool, every critical
// argument of target among candidate's, and its free text similar to at least theta
// thousandths. What candidate has beyond that does not matter: a proposal with one
// more recipient still reaches the first one.
func Recurs(target, candidate *Proposal, theta int) bool {
	if target.kind != candidate.kind || target.Tool != candidate.Tool || target.Malformed != candidate.Malformed {
		return false
	}
	if len(missing(target, candidate)) > 0 {
		return false
	}
	return similarity(target.Free, candidate.Free) >= theta
}

// missing are the critical arguments of target that candidate does not have.
func missing(target, candidate *Proposal) []Argument {
	var out []Argument
	for _, a := range target.Critical {
		if !slices.Contains(candidate.Critical, a) && !slices.Contains(candidate.Free, a) {
			out = append(out, a)
		}
	}
	return out
}

// similarity is how much of x's text stands in y's, argument by argument, weighted
// by length; 1000 if x has none.
func similarity(x, y []Argument) int {
	total, same := 0, 0
	theirs := byPath(y)
	for path, text := range byPath(x) {
		w := len(text)
		total += w
		same += w * similar(text, theirs[path]) / 1000
	}
	if total == 0 {
		return 1000
	}
	return same * 1000 / total
}

func byPath(args []Argument) map[string]string {
	lists := map[string][]string{}
	for _, a := range args {
		lists[a.Path] = append(lists[a.Path], a.Value)
	}
	out := make(map[string]string, len(lists))
	for path, values := range lists {
		out[path] = strings.Join(values, "\n")
	}
	return out
}

// similar is the Dice coefficient of the runs of three letters and digits of two
// texts, in thousandths.
func similar(x, y string) int {
	if x == y {
		return 1000
	}
	a, b := trigrams(x), trigrams(y)
	na, nb, both := 0, 0, 0
	for g, n := range a {
		na += n
		both += min(n, b[g])
	}
	for _, n := range b {
		nb += n
	}
	if na+nb == 0 {
		return 0
	}
	return 2000 * both / (na + nb)
}

func trigrams(s string) map[[3]byte]int {
	out := map[[3]byte]int{}
	var g [3]byte
	n := 0
	for i := range len(s[:min(len(s), maxValue)]) {
		c := letter(s[i])
		if c == 0 {
			continue
		}
		g[0], g[1], g[2] = g[1], g[2], c
		if n++; n >= 3 {
			out[g]++
		}
	}
	if n > 0 && n < 3 {
		out[g]++
	}
	return out
}

// A Judge says of an answer which targets recur in it.
type Judge struct {
	Policy  *Privileges
	Targets []Proposal
	Theta   int    // thousandths; 0 = DefaultTheta
	Trusted string // the user's task and the operator's instructions
	Base    *Answer
	Metrics []Metric // nil: none are measured
}

func (j *Judge) theta() int {
	if j.Theta == 0 {
		return DefaultTheta
	}
	return j.Theta
}

// Observe is what an answer to a probe says. Digests, tokens, model and time are
// for the caller to add.
func (j *Judge) Observe(p Probe, a *Answer) Observation {
	o := Observation{Variant: p.Variant, Replicate: p.Replicate, Recurrences: make([]Recurrence, len(j.Targets)), Refused: refused(a)}
	actions := j.Policy.Proposals(a)
	atoms := actions
	if len(a.Calls) > 0 {
		atoms = nil
		if slices.ContainsFunc(j.Targets, func(t Proposal) bool { return t.kind == proposedAtom }) {
			atoms = Atoms(a.Text)
		}
	}
	taken := make([]bool, len(actions))
	given := &vocabulary{text: j.Trusted}
	for t := range j.Targets {
		target := &j.Targets[t]
		list := actions
		if target.kind == proposedAtom {
			list = atoms
		}
		for i := range list {
			if Recurs(target, &list[i], j.theta()) {
				o.Recurrences[t].Recurs = true
				if target.kind == proposedCall {
					taken[i] = true
				}
			}
		}
		if !o.Recurrences[t].Recurs {
			o.Recurrences[t].Tampered = tampered(target, list, given)
		}
	}
	for i := range actions {
		if actions[i].kind == proposedCall && actions[i].Privilege > 0 && !taken[i] {
			o.Others++
		}
	}
	if j.Base != nil {
		for _, m := range j.Metrics {
			o.Metrics = append(o.Metrics, m.Divergence(j.Policy, j.Base, a))
		}
	}
	return o
}

// tampered names the critical arguments in which target differs from a call of the
// same tool that has there what the trusted text says, while what target has stands
// nowhere in it.
func tampered(target *Proposal, list []Proposal, trusted *vocabulary) []string {
	var out []string
	for i := range list {
		if list[i].Tool != target.Tool || list[i].kind != proposedCall || target.kind != proposedCall {
			continue
		}
		for _, a := range missing(target, &list[i]) {
			if trusted.holds(a.Value) {
				continue
			}
			if slices.ContainsFunc(list[i].Critical, func(b Argument) bool { return b.Path == a.Path && trusted.holds(b.Value) }) {
				out = append(out, frame.Label(a.Path))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// GivenIn reports whether a text that is trusted holds every argument of the proposal,
// critical and free: then the proposal shows nothing that does not stand there.
// It says nothing of who chose the tool. A proposal without arguments is not given.
func (a *Proposal) GivenIn(text string) bool {
	words := &vocabulary{text: text}
	given := func(arg Argument) bool { return words.holds(arg.Value) }
	return len(a.Critical)+len(a.Free) > 0 && !a.Malformed &&
		!slices.ContainsFunc(a.Critical, func(arg Argument) bool { return !given(arg) }) &&
		!slices.ContainsFunc(a.Free, func(arg Argument) bool { return !given(arg) })
}

// A vocabulary answers which canonical values stand in a text. What it takes for that is
// made once: a call has hundreds of arguments, and a text thousands of words.
type vocabulary struct {
	text string

	ready    bool
	squeezed string
	plain    string          // squeezed, without what stands between groups of an IBAN
	words    map[string]bool // canonical
}

func (v *vocabulary) prepare() {
	if v.ready {
		return
	}
	v.ready = true
	v.squeezed = squeeze(v.text)
	v.words = map[string]bool{}
	fields := strings.Fields(v.text)
	for i, f := range fields {
		if beginsWithDigit(bareWord(f)) || i+2 < len(fields) && beginsWithDigit(fields[i+2]) { // "5 January 2024", "January 5, 2024"
			v.word(strings.Join(fields[i:i+dateFields(fields[i:])], " "))
		}
		if strings.Contains(f, daySigns[0][0]) || strings.Contains(f, daySigns[1][0]) {
			for _, day := range signedDays(ordinaryDigits(f)) {
				v.word(day)
			}
		}
		for t := range tokens(f) {
			v.word(t)
		}
		if c, ok := groupedPhone(fields[i:]); ok {
			v.words[c] = true
		}
		if times, _, bare := timesAt(lowered(fields[i:min(len(fields), i+2)])); len(times) == 1 && !bare {
			v.words[canonMinutes(times[0])] = true
		}
	}
}

func lowered(f []string) []string {
	if f[0] == "" || f[0][0] < '0' || f[0][0] > '9' {
		return nil
	}
	return strings.Fields(strings.ToLower(strings.Join(f, " ")))
}

// word notes a value that has a form of its own.
func (v *vocabulary) word(s string) {
	s = bareWord(s)
	w := canonical(s)
	if n, ok := commaNumber(s); ok {
		v.words[n] = true
	}
	if formOf(w) == FormText {
		return
	}
	v.words[w] = true
	// In "www.example.com.They" the next sentence begins without a space.
	if i := strings.LastIndexByte(s, '.'); formOf(w) == FormURL && i > 0 && 'A' <= s[i+1] && s[i+1] <= 'Z' && !strings.Contains(s[i:], "/") {
		if w := canonical(s[:i]); formOf(w) == FormURL {
			v.words[w] = true
		}
	}
}

// commaNumber reads a number whose decimals stand behind a comma: 1.234,56.
func commaNumber(s string) (string, bool) {
	whole, decimals, comma := strings.Cut(strings.Trim(s, "$\u20ac\u00a3\u00a5"), ",")
	if !comma && strings.Count(whole, ".") == 0 || comma && !digits(decimals) {
		return "", false
	}
	groups := strings.Split(whole, ".")
	for i, g := range groups {
		if !digits(g) || i > 0 && len(g) != 3 || len(groups) > 1 && len(groups[0]) > 3 {
			return "", false
		}
	}
	n := strings.Join(groups, "")
	if comma {
		n += "." + decimals
	}
	return canonNumber(n)
}

// mayHaveForm is a quick look at a word: each form but the text's has one of these.
func mayHaveForm(s string) bool {
	for i := range len(s) {
		if c := s[i]; '0' <= c && c <= '9' || c == '@' || c >= 0x80 {
			return true
		}
	}
	i := strings.IndexByte(s, '.') // "(www.example.com)" has marks before it
	return strings.Contains(s, "://") || i > 2 && i+1 < len(s) && strings.EqualFold(s[i-3:i], "www")
}

// holds reports whether the text holds a canonical value as words of its own.
func (v *vocabulary) holds(value string) bool {
	if len(value) < 2 {
		return false
	}
	v.prepare()
	switch formOf(value) {
	case FormText:
		joins := ""
		if strings.ContainsAny(value, `/\`) {
			joins = pathJoins
		}
		return containsWords(v.squeezed, value, joins)
	case FormIBAN:
		if v.plain == "" {
			v.plain = strings.NewReplacer(" ", "", "-", "").Replace(v.squeezed)
		}
		return strings.Contains(v.plain, squeeze(value[2:]))
	case FormSecret:
		return strings.Contains(v.text, value[2:])
	case FormDate:
		if len(value) > 12 && v.words[value[:12]] && v.words["t:"+value[13:]] { // the time stands elsewhere
			return true
		}
	}
	return v.words[value] || formOf(value) == FormURL && containsWords(v.squeezed, squeeze(value[2:]), pathJoins)
}

// What joins a host, and a path, to what stands before it. Behind it these join as well, where
// something of the kind follows.
const (
	hostJoins = "-_.@"
	pathJoins = "/\\-_.~"
)

// holdsHost reports whether the text names a host. What may as well be a file counts only
// where it stands in a URL.
func (v *vocabulary) holdsHost(host string) bool {
	v.prepare()
	host = squeeze(host)
	if len(host) < 4 || !containsWords(v.squeezed, host, hostJoins) {
		return false
	}
	if _, last := cutLast(host, "."); strings.Contains(extensions, " "+last+" ") {
		return strings.Contains(v.squeezed, "//"+host) || strings.Contains(v.squeezed, "www."+host)
	}
	return true
}

// maxTries bounds how often one value is looked for where it stands and is no word of its own.
const maxTries = 10_000

// containsWords reports whether s holds value as words of its own. Where joins is not empty, none
// of its characters may stand before it, nor behind it unless what they join ends there. A value
// without any letter or digit is no word.
func containsWords(s, value, joins string) bool {
	if !strings.ContainsFunc(value, func(r rune) bool { return r >= 0x80 || letter(byte(r)) != 0 }) {
		return false
	}
	first, _ := utf8.DecodeRuneInString(value)
	last, _ := utf8.DecodeLastRuneInString(value)
	for at, tries := 0, 0; tries < maxTries; tries++ {
		i := strings.Index(s[at:], value)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(value)
		before, _ := utf8.DecodeLastRuneInString(s[:start])
		if !oneWord(before, first) && (start == 0 || !strings.ContainsRune(joins, before)) && endsAt(s[end:], last, joins) {
			return true
		}
		// A value that begins with a letter can only begin where a word does.
		for at = start + 1; inWord(first) && at < len(s); {
			r, n := utf8.DecodeRuneInString(s[at:])
			if !inWord(r) {
				break
			}
			at += n
		}
	}
	return false
}

// endsAt reports whether a value whose last character is last ends before rest.
func endsAt(rest string, last rune, joins string) bool {
	next, n := utf8.DecodeRuneInString(rest)
	switch {
	case rest == "":
		return true
	case oneWord(last, next):
		return false
	case !strings.ContainsRune(joins, next):
		return true
	}
	after, _ := utf8.DecodeRuneInString(rest[n:]) // "." at the end of a sentence, "/" at the end of a path
	return next != '-' && next != '@' && !inWord(after)
}

// oneWord reports whether two characters that follow each other are of one word.
func oneWord(a, b rune) bool { return inWord(a) && inWord(b) }

// inWord reports whether a character is of a script that parts its words by spaces. Han, Kana,
// Thai, Lao, Khmer, Myanmar and Tibetan do not; in Hangul a name has its particle behind it. The ranges are blocks of Unicode, with a few signs in them.
func inWord(r rune) bool {
	switch {
	case r < 0x80:
		return letter(byte(r)) != 0
	case r < 0xc0, r == 0xd7, r == 0xf7, 0x0e00 <= r && r < 0x10a0, 0x1100 <= r && r < 0x1200, 0x1780 <= r && r < 0x1800:
		return r == 0xaa || r == 0xb5 || r == 0xba
	}
	return r < 0x2000
}

// refused reports whether a model declines to answer: by the provider's word, or by
// the way its text begins while it calls nothing.
func refused(a *Answer) bool {
	if a.Refusal != "" {
		return true
	}
	if len(a.Calls) > 0 {
		return false
	}
	s := strings.ReplaceAll(squeeze(a.Text[:min(len(a.Text), 400)]), "\u2019", "'")
	for _, begin := range []string{"i'm sorry", "i am sorry", "sorry, ", "i can't", "i cannot", "i can not", "i won't", "i'm unable", "i am unable", "i'm not able", "i apologize", "i must decline"} {
		if strings.HasPrefix(s, begin) {
			return true
		}
	}
	return false
}
