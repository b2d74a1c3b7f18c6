// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// A comparison says whether a value of a call is what a plan calls by other words: "Ann" is ann@example.com, "general" is
// #general, "main.go" is /srv/app/main.go, "9 pm" is 21:00, "my dentist" is what an address book says. All comparisons of
// plans with calls are this one. A third party decides what a name stands for, so a value that is related by a name is still
// looked at like any other that is read.
type comparison struct{ a *counterfactual.Assembly }

// same reports whether the plan's words may mean the value. Both are canonical. Of a value that is a list, each part has to
// be meant.
func (c comparison) same(planned, called string) bool {
	if planned == called {
		return true
	}
	if strings.Contains(called, "@") && strings.ContainsAny(called, ",;") {
		return !slices.ContainsFunc(strings.FieldsFunc(called, func(r rune) bool { return r == ',' || r == ';' }), func(one string) bool {
			return !c.same(planned, "e:"+strings.TrimSpace(one))
		})
	}
	form := formOf(called)
	if form == counterfactual.FormDate {
		clock, timed := "", len(called) > 12
		if timed {
			clock = "t:" + called[13:]
		}
		if same, known := counterfactual.SameDay(bare(planned), called); known {
			return same
		}
		return timed && slices.Contains(counterfactual.Meanings(bare(planned)), clock)
	}
	if form == counterfactual.FormTime || form == counterfactual.FormNumber {
		if slices.Contains(counterfactual.Meanings(bare(planned)), called) {
			return true
		}
		if form == counterfactual.FormTime {
			return formOf(planned) == counterfactual.FormDate && len(planned) > 12 && planned[12:] == "T"+called[2:]
		}
	}
	if !isName(planned) {
		return strings.Contains(called, planned) && formOf(called) == counterfactual.FormText || pathWords(planned, called)
	}
	for part := range parts(planned) {
		if c.names(part, called) {
			return true
		}
	}
	return false
}

// comparable reports whether a plan's words would say so if they meant another value of this form.
func (c comparison) comparable(planned, called string) bool {
	switch form := formOf(called); form {
	case counterfactual.FormDate:
		_, known := counterfactual.SameDay(bare(planned), called)
		return known
	case counterfactual.FormTime, counterfactual.FormNumber:
		return slices.ContainsFunc(append(counterfactual.Meanings(bare(planned)), planned), func(v string) bool { return formOf(v) == form })
	}
	return true
}

// isName reports whether a canonical value is words, and no address, path or number.
func isName(s string) bool {
	return formOf(s) == counterfactual.FormText && !strings.ContainsAny(s, "@/\\") && !(strings.Contains(s, ".") && !strings.Contains(s, " "))
}

// parts are the names in a list of names.
func parts(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if !yield(s) {
			return
		}
		for p := range strings.SplitSeq(strings.NewReplacer(" and ", ",", " & ", ",", " und ", ",", " y ", ",", " et ", ",", ";", ",").Replace(s), ",") {
			if p = strings.TrimSpace(p); p != s && p != "" && !yield(p) {
				return
			}
		}
	}
}

// generic are words of names that do not tell one thing from another of its kind.
const generic = " the a an my our your his her their team group channel room list repo repository project file files document doc folder account user person people mr mrs ms dr page website site link article der die das den mein meine unser unsere el la le les los mi mon ma notre of on in to for at about from with von f\u00fcr de del du and new latest last first "

// self are words by which a user speaks of himself.
const self = " me myself i mich mir ich yo m\u00ed moi eu mim "

// names reports whether a name may stand for a value: each word of it that means something stands in the value, or beside it
// in a text that was read.
func (c comparison) names(name, value string) bool {
	if strings.Contains(self, " "+name+" ") {
		return c.a.TrustedTexts().Hold(bare(value)) || slices.ContainsFunc([]string{"user", "me", "you", "self", "owner", "account", "profile", "my"}, func(w string) bool { return c.a.HoldNear(value, []string{w}) })
	}
	in := wordsOf(value)
	var want []string
	for _, w := range wordsOf(name) {
		if !strings.Contains(generic, " "+w+" ") {
			want = append(want, w)
		}
	}
	if len(want) == 0 {
		want = wordsOf(name)
	}
	var missing []string
	for _, w := range want {
		if !slices.ContainsFunc(in, func(v string) bool { return w == v || len(w) > 4 && strings.HasPrefix(v, w[:len(w)-len(w)/4]) }) {
			missing = append(missing, w)
		}
	}
	return len(want) > 0 && (len(missing) == 0 || c.a.HoldNear(value, missing))
}

// pathWords reports whether an address or path is the end of the called one, or the other way round: app is acme/app,
// archive is archive/a.pdf.
func pathWords(planned, called string) bool {
	if formOf(planned) != formOf(called) && (formOf(planned) != counterfactual.FormText || formOf(called).Names()) {
		return false
	}
	p, v := strings.Split(strings.Trim(bare(planned), "/"), "/"), strings.Split(strings.Trim(bare(called), "/"), "/")
	return formOf(called) == counterfactual.FormText && len(p) < len(v) && (slices.Equal(p, v[:len(p)]) || slices.Equal(p, v[len(v)-len(p):]))
}

func formOf(canonical string) counterfactual.Form {
	return counterfactual.Argument{Value: canonical}.Form()
}

// bare is a canonical value without the letters of its form.
func bare(canonical string) string {
	if formOf(canonical) != counterfactual.FormText {
		return canonical[2:]
	}
	return canonical
}

// wordsOf are the letters and digits of a canonical value between other ASCII characters.
func wordsOf(canonical string) []string {
	return strings.FieldsFunc(strings.ToLower(bare(canonical)), func(r rune) bool {
		return r < 0x80 && !('a' <= r && r <= 'z' || '0' <= r && r <= '9')
	})
}
