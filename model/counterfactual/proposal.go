// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An Answer is one turn of a model. Its strings are third-party text.
type Answer struct {
	Text, Reasoning, Refusal string
	Calls                    []Call
}

// A Call is a tool call that a model proposed.
type Call struct {
	ID, Name  string
	Arguments []byte // as the model spelled them
}

// A Privileges says which tools are privileged and which of their arguments are
// critical. The first rule whose pattern matches counts. The zero Privileges takes
// every tool for fully privileged.
type Privileges struct {
	Rules []ToolRule
	// Guess lets the name of a tool that no rule matches say whether it is privileged, and
	// Hints, where that is not nil, what is known of it.
	Guess bool
	Hints func(tool string) Hint
	// Ruling is what the rules about values say of a call, in a word; "": nothing. It is for the
	// metric policy-difference. nil: there are no such rules.
	Ruling func(c Call) string
}

// A ToolRule is one line of a Privileges.
type ToolRule struct {
	// Tool is a tool's name, in which * stands for any run of characters.
	Tool string
	// Privilege in thousandths; 0 = may be called by anybody.
	Privilege int
	// Critical and Free name arguments, at any depth. What neither names is critical if
	// it is called like something that decides where a proposal goes or how much it takes.
	Critical, Free []string
}

// GuessPrivileges takes tools for harmless whose name says that they look and says nothing
// else, and all others for privileged. A tool may be called what it is not.
func GuessPrivileges() *Privileges { return &Privileges{Guess: true} }

// rule is the rule for a tool.
func (p *Privileges) rule(tool string) ToolRule {
	if p == nil {
		return ToolRule{Privilege: 1000}
	}
	for _, r := range p.Rules {
		if Glob(r.Tool, tool) {
			return r
		}
	}
	if p.Guess {
		return ToolRule{Privilege: p.guess(tool)}
	}
	return ToolRule{Privilege: 1000}
}

// Privilege is that of a tool, in thousandths.
func (p *Privileges) Privilege(tool string) int { return min(max(p.rule(tool).Privilege, 0), 1000) }

// PrivilegeOf is that of a call: what a tool does may follow from its arguments. A rule for the tool goes before that.
func (p *Privileges) PrivilegeOf(c Call) int {
	if n := p.Privilege(c.Name); n > 0 || p == nil || !p.Guess || !actsBy(c.Arguments) ||
		slices.ContainsFunc(p.Rules, func(r ToolRule) bool { return Glob(r.Tool, c.Name) }) {
		return n
	}
	return 1000
}

// Glob matches s against a pattern, in which * stands for any run of characters, in time
// linear in s for each star.
func Glob(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	s, ok := strings.CutPrefix(s, head)
	if !ok || !star {
		return ok && s == ""
	}
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		_, s, ok = strings.Cut(s, part)
		if !ok {
			return false
		}
	}
	return strings.HasSuffix(s, last)
}

// An actionKind says what an Proposal is.
type proposalKind string

// The kinds of proposals.
const (
	proposedCall proposalKind = "call"
	proposedAtom proposalKind = "atom" // of a text: what a reader may act on
)

// A Proposal is what a model proposes, in canonical form. Its strings are
// third-party text.
type Proposal struct {
	kind      proposalKind
	Tool      string // of a call; the kind of atom otherwise: url, email, iban, amount, command
	Privilege int
	// Malformed: the arguments are no JSON object. Their bytes are one critical
	// argument then.
	Malformed bool
	Critical  []Argument
	Free      []Argument
}

// An Argument is one value, canonical, under the names that lead to it. Elements
// of an array share one path.
type Argument struct{ Path, Value string }

// Bounds of an Proposal: arguments beyond are one more argument, a digest of the rest.
const (
	maxArguments = 256
	maxValue     = 4096
	maxProposals = 256
	maxPath      = 512 // bytes of the names above an argument: a digest stands for longer ones
)

// Proposal is c under the policy.
func (p *Privileges) Proposal(c Call) Proposal {
	rule := p.rule(c.Name)
	a := Proposal{kind: proposedCall, Tool: c.Name, Privilege: p.PrivilegeOf(c)}
	var doc strictjson.Doc
	args := c.Arguments
	if len(strings.TrimSpace(string(args))) == 0 {
		args = []byte("{}")
	}
	if err := doc.Reset(args, strictjson.Limits{Bytes: 1 << 20, Depth: 32, Values: 1 << 16}); err != nil || doc.Root().Kind() != '{' {
		a.Malformed = true
		a.Critical = []Argument{{"", squeeze(cutValue(string(args)))}}
		return a
	}
	var all []Argument
	var prose []bool
	flatten(doc.Root(), "", func(path string, v strictjson.Value) {
		text := v.Text()
		if v.Kind() != '"' {
			text = string(v.Raw())
		}
		all = append(all, Argument{path, canonical(text)})
		prose = append(prose, isProse(text))
	})
	for i, arg := range all {
		if rule.critical(arg.Path, prose[i]) {
			a.Critical = append(a.Critical, arg)
		} else {
			a.Free = append(a.Free, arg)
		}
	}
	a.Critical, a.Free = bounded(a.Critical), bounded(a.Free)
	return a
}

func bounded(args []Argument) []Argument {
	slices.SortFunc(args, func(x, y Argument) int {
		if c := strings.Compare(x.Path, y.Path); c != 0 {
			return c
		}
		return strings.Compare(x.Value, y.Value)
	})
	if len(args) <= maxArguments {
		return args
	}
	h := sha256.New()
	for _, a := range args[maxArguments:] {
		h.Write([]byte(a.Path + "\x00" + a.Value + "\x00"))
	}
	return append(args[:maxArguments:maxArguments], Argument{"\x00rest", hex.EncodeToString(h.Sum(nil))})
}

// flatten calls f with every scalar under v. Each may have a path of its own: one long
// name above thousands of them must not stand in the memory thousands of times.
func flatten(v strictjson.Value, path string, f func(path string, v strictjson.Value)) {
	if kind := v.Kind(); len(path) > maxPath && (kind == '{' || kind == '[') {
		sum := sha256.Sum256([]byte(path))
		path = "\x00" + hex.EncodeToString(sum[:])
	}
	switch v.Kind() {
	case '{':
		for name, val := range v.Members() {
			p := name.Text()
			if path != "" {
				p = path + "." + p
			}
			flatten(val, p, f)
		}
	case '[':
		for e := range v.Elements() {
			flatten(e, path, f)
		}
	case 'n':
	default:
		f(path, v)
	}
}

// criticalWords are the words of arguments' names that say where a proposal goes,
// how much it takes, or what is executed.
var criticalWords = []string{
	"recipient", "recipients", "to", "cc", "bcc", "email", "emails", "mail", "url", "urls", "uri", "link", "href",
	"host", "hostname", "ip", "domain", "webhook", "endpoint", "path", "file", "filename", "files", "directory", "dir", "folder", "amount", "price",
	"sum", "total", "quantity", "iban", "account", "bic", "wallet", "address", "id", "ids", "user", "username",
	"channel", "phone", "number", "command", "cmd", "code", "script", "sql", "password", "token", "key", "role",
	"payee", "beneficiary", "receiver", "addressee", "query", "statement", "expression", "permission", "permissions", "participants", "attendees", "members", "owner", "target", "destination",
	// what widens a call: who else gets something, what goes along, who may see it, and how often it happens
	"copy", "reply", "replyto", "guests", "guest", "invitees", "watchers", "followers", "assignees", "subscribers", "attachment", "attachments", "attach", "raw", "mime", "header", "headers", "callback",
	"acl", "access", "level", "scope", "scopes", "privilege", "privileges", "grant", "grants", "visibility", "public", "audience", "secret", "recurring", "recurrence", "repeat", "repeats", "env", "environment", "startup", "hook", "canonical", "redirect", "forward",
}

// critical reports whether an argument has to be equal.
func (r ToolRule) critical(path string, prose bool) bool {
	if len(path) > 2*maxPath {
		return true // nobody calls anything so: the name is not looked into
	}
	_, leaf := cutLast(path, ".")
	named := func(list []string) bool { return slices.Contains(list, path) || slices.Contains(list, leaf) }
	switch {
	case named(r.Critical), strings.HasPrefix(leaf, "\x00"):
		return true
	case named(r.Free):
		return false
	case prose:
		return slices.ContainsFunc(words(leaf), func(w string) bool { return slices.Contains(executed, w) })
	}
	return slices.ContainsFunc(words(leaf), func(w string) bool { return slices.Contains(criticalWords, w) })
}

// executed are words of names of arguments that are carried out, however long they are.
var executed = []string{"command", "cmd", "code", "script", "sql", "query", "statement", "expression"}

// free reports whether the operator has named the argument as one that may come from any text.
func (r ToolRule) free(path string) bool {
	_, leaf := cutLast(path, ".")
	return slices.Contains(r.Free, path) || slices.Contains(r.Free, leaf)
}

func cutLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return "", s
}

// letter is c in lower case where it belongs to a word: an ASCII letter or digit, or what
// is not ASCII; else 0.
func letter(c byte) byte { return letters[c] }

var letters = func() (t [256]byte) {
	for i := range t {
		switch c := byte(i); {
		case 'A' <= c && c <= 'Z':
			t[i] = c + 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c >= 0x80:
			t[i] = c
		}
	}
	return t
}()

// words splits a name at every ASCII character but letters and digits, and before a
// capital letter, in lower case.
func words(name string) []string {
	var out []string
	var w []byte
	flush := func() {
		if len(w) > 0 {
			out = append(out, string(w))
			w = nil
		}
	}
	for i := range len(name) {
		c := letter(name[i])
		if c == 0 || c != name[i] && i > 0 && 'a' <= name[i-1] && name[i-1] <= 'z' {
			flush()
		}
		if c != 0 {
			w = append(w, c)
		}
	}
	flush()
	return out
}

// isProse reports whether a value is written for a reader: more than 12 words.
func isProse(s string) bool {
	return len(s) > 2*maxValue || len(strings.Fields(s)) > 12
}

// Digest identifies a proposal: its tool and its canonical arguments.
func (a *Proposal) Digest() string {
	h := sha256.New()
	field := func(s string) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	field("dev.pellucid/action/1")
	field(string(a.kind))
	field(a.Tool)
	for _, list := range [][]Argument{a.Critical, a.Free} {
		field(strconv.Itoa(len(list)))
		for _, x := range list {
			field(x.Path)
			field(x.Value)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Proposals are all that an answer proposes, in its order: its tool calls; if it has
// none, the atoms of its text.
func (p *Privileges) Proposals(a *Answer) []Proposal {
	var out []Proposal
	for _, c := range a.Calls[:min(len(a.Calls), maxProposals)] {
		out = append(out, p.Proposal(c))
	}
	if len(a.Calls) > 0 {
		return out
	}
	return Atoms(a.Text)
}

// Targets are the proposals of an answer that need an explanation: its privileged
// calls, each once, or the atoms of its text. At most MaxTargets.
func (p *Privileges) Targets(a *Answer) []Proposal {
	var out []Proposal
	seen := map[string]bool{}
	for _, x := range p.Proposals(a) {
		if d := x.Digest(); !seen[d] && (x.kind == proposedAtom || x.Privilege > 0) && len(out) < MaxTargets {
			seen[d] = true
			out = append(out, x)
		}
	}
	return out
}
