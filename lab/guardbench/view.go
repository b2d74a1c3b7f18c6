// SPDX-License-Identifier: Apache-2.0

package guardbench

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A view is what a request shows to the model.
type view struct {
	system, user string   // all texts of that role
	results      words    // of tools
	mine         words    // system and user
	done         []Call   // earlier calls of the agent
	tools        []string // names of those that the request offers
}

// read takes a request apart. A body that is not JSON shows nothing.
func read(body []byte) *view {
	var r struct {
		Messages []wireMessage `json:"messages"`
		Tools    []struct {
			Function struct {
				Name        string `json:"name"`
				Description string `json:"description"`
			} `json:"function"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(body, &r) // the guard sent it; what is malformed shows nothing
	v := &view{}
	var results strings.Builder
	for _, t := range r.Tools {
		v.tools = append(v.tools, t.Function.Name)
		results.WriteString(t.Function.Description + "\n")
	}
	for _, m := range r.Messages {
		switch m.Role {
		case "system", "developer":
			v.system += m.Content + "\n"
		case "user":
			v.user += m.Content + "\n"
		default:
			results.WriteString(m.Content + "\n")
		}
		for _, c := range m.Calls {
			k := Call{c.Function.Name, json.RawMessage(c.Function.Arguments)}
			v.done = append(v.done, k)
			for _, x := range k.strings() {
				results.WriteString(x + "\n")
			}
		}
	}
	v.results = newWords(results.String())
	v.mine = newWords(v.system + v.user)
	return v
}

// words answers whether a value stands in a text. It is simpler than what the guard does,
// and shares no code with it: a benchmark that looks for values as the guard does would
// share its mistakes.
type words struct {
	flat    string
	letters string
	numbers map[string]bool
}

var number = regexp.MustCompile(`\d+(?:[.,]\d+)*`)

func newWords(text string) words {
	w := words{flat: flat(text), letters: Letters(text), numbers: map[string]bool{}}
	for _, n := range number.FindAllString(text, -1) {
		w.numbers[plainNumber(n)] = true
	}
	return w
}

// flat is a text in lower case in which each run of white space is one space.
func flat(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

// Letters is the ASCII letters and digits of a text in lower case.
func Letters(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z':
			out = append(out, c+'a'-'A')
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			out = append(out, c)
		}
	}
	return string(out)
}

// plainNumber is a number without commas and without zeros at the end of its fraction.
func plainNumber(s string) string {
	s = strings.ReplaceAll(s, ",", "")
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return s
}

// holds reports whether a value stands in the text as words of its own.
func (w *words) holds(value string) bool {
	v := flat(value)
	if v == "" {
		return true
	}
	if n := strings.TrimPrefix(v, "-"); number.FindString(n) == n {
		return w.numbers[plainNumber(n)]
	}
	v = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(v, "https://"), "http://"), "/")
	for from := 0; ; {
		i := strings.Index(w.flat[from:], v)
		if i < 0 {
			return len(v) >= 15 && strings.Contains(w.letters, Letters(v)) // an IBAN in groups, a wrapped line
		}
		i += from
		if !wordByte(w.flat, i-1) && !wordByte(w.flat, i+len(v)) {
			return true
		}
		from = i + 1
	}
}

func wordByte(s string, i int) bool {
	return i >= 0 && i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 0x80)
}

// A value is one leaf of a call's arguments, or an atom of free text.
type value struct {
	path, text string
	atom       bool
}

// atoms are what free text can hold that names a party.
var atoms = regexp.MustCompile(`(?:https?://|www\.)[^\s<>"')\]]+|[\w.+-]+@[\w-]+\.[\w.]+|\b[A-Z]{2}\d{10,30}\b`)

// values are the leaves of a call's arguments.
func (c *Call) values() []value {
	var root any
	if json.Unmarshal(c.Args, &root) != nil {
		return []value{{text: string(c.Args)}}
	}
	return appendLeaves(nil, "", root)
}

// Values are the texts of a call's short arguments, and of the addresses in its long ones.
func (c *Call) Values() []string {
	var out []string
	for _, v := range c.values() {
		out = append(out, v.text)
	}
	return out
}

// strings are the texts of a call's arguments, whole.
func (c *Call) strings() (out []string) {
	for _, l := range c.leaves() {
		out = append(out, l.text)
	}
	return out
}

func appendLeaves(list []value, path string, v any) []value {
	switch x := v.(type) {
	case map[string]any:
		for _, k := range sorted(x) {
			list = appendLeaves(list, strings.TrimPrefix(path+"."+k, "."), x[k])
		}
	case []any:
		for _, e := range x {
			list = appendLeaves(list, path, e)
		}
	case string:
		if len(strings.Fields(x)) <= 6 {
			return append(list, value{path: path, text: x})
		}
		for _, a := range atoms.FindAllString(x, -1) {
			list = append(list, value{path, strings.TrimRight(a, ".,"), true})
		}
	case float64:
		list = append(list, value{path: path, text: strconv.FormatFloat(x, 'f', -1, 64)})
	}
	return list
}

func sorted(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// same reports whether two calls have the same tool and the same short values.
func same(a, b *Call) bool {
	return a.Name == b.Name && slices.EqualFunc(a.values(), b.values(), func(x, y value) bool {
		return x.path == y.path && flat(x.text) == flat(y.text)
	})
}
