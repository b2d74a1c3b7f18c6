// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strings"
	"unicode/utf8"
)

// Some models write calls into their text, and some clients find them there: between tags of
// the model's own training, such as <tool_call>, or as the elements that a prompt taught it.

// openers are what a call that is written as text begins with, in small letters.
var openers = []string{
	"<tool_call", "<tool_use", "<function_call", "<invoke ", "<function=", "[tool_calls]", "<|python_tag|>", "<|tool_call", "<\uff5ctool\u2581call",
}

// A Writing takes in a text of a model piece by piece, and finds where a call that is written
// as text may begin. Its zero value is before the first piece.
type Writing struct {
	opener []byte // so far, in small letters
	line   []byte // the beginning of the line, as far as it is looked at
	fence  string // of the block of code that is open
}

// maxFence is how much of a line is looked at for a fence.
const maxFence = 64

// Add takes the next piece. began: the opener of a call has been completed in it; shown: each
// of these stands in a block of code. Whether one stands in a span of code is not known before
// the line has ended: see Written.
func (w *Writing) Add(piece string) (began, shown bool) {
	shown = true
	for i := range len(piece) {
		c := piece[i]
		if w.opens(c) {
			began, shown = true, shown && w.fence != ""
		}
		w.character(c)
	}
	return began, began && shown
}

// opens takes a character of what may be an opener, and reports whether it is the last one.
func (w *Writing) opens(c byte) bool {
	if c == '<' || c == '[' {
		w.opener = append(w.opener[:0], c)
		return false
	}
	if len(w.opener) == 0 {
		return false
	}
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	w.opener = append(w.opener, c)
	for _, o := range openers {
		if strings.HasPrefix(o, string(w.opener)) {
			if len(o) > len(w.opener) {
				return false
			}
			w.opener = w.opener[:0]
			return true
		}
	}
	w.opener = w.opener[:0]
	return false
}

// character keeps where blocks of code begin and end, as CommonMark has it: between lines of
// backticks or tildes.
func (w *Writing) character(c byte) {
	if c == '\n' {
		w.lineEnds()
		w.line = w.line[:0]
		return
	}
	if len(w.line) < maxFence {
		w.line = append(w.line, c)
	}
}

func (w *Writing) lineEnds() {
	if w.fence == "" && (len(w.line) == 0 || !strings.ContainsRune(" `~", rune(w.line[0]))) {
		return
	}
	line := strings.TrimLeft(string(w.line), " ")
	if len(w.line)-len(line) > 3 {
		return
	}
	mark := line[:len(line)-len(strings.TrimLeft(line, "`"))]
	if mark == "" {
		mark = line[:len(line)-len(strings.TrimLeft(line, "~"))]
	}
	switch rest := line[len(mark):]; {
	case len(mark) < 3:
	case w.fence == "" && (mark[0] == '~' || !strings.Contains(rest, "`")):
		w.fence = mark
	case w.fence != "" && mark[0] == w.fence[0] && len(mark) >= len(w.fence) && strings.TrimSpace(rest) == "":
		w.fence = ""
	}
}

// Written are the calls in the text of an answer.
func (a *Answer) Written() (calls []Call, shown []bool) { return Written(a.Text(PartText, "")) }

// Written are the calls that are written as text, in their order, and of each whether it
// stands in a block or a span of code. What begins with a token of a model's own and cannot
// be read is a call of another kind. A tag that names no tool is none.
func Written(text string) (calls []Call, shown []bool) {
	var w Writing
	for at, n := 0, 0; at < len(text); n++ {
		i := nextOpener(text[at:])
		if i < 0 {
			break
		}
		if n == maxOpeners || len(calls) == MaxCalls {
			return append(calls, Call{Kind: CallOther}), append(shown, false)
		}
		w.Add(text[at : at+i])
		begin := at + i
		size := openerAt(text[begin:])
		_, code := w.Add(text[begin : begin+size])
		code = code || inSpan(text, begin)
		at = begin + size
		c, end := writtenCall(text[begin:])
		if c.Name != "" || c.Kind == CallOther {
			calls, shown = append(calls, c), append(shown, code)
		}
		if end > size {
			w.Add(text[at : begin+end])
			at = begin + end
		}
	}
	return calls, shown
}

// inSpan reports whether what begins at a place of a text stands in a span of code, as CommonMark
// has it: between two runs of as many backticks, here within one line. A run without a second
// one opens none.
func inSpan(text string, at int) bool {
	start := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	at -= start
	if len(line) > maxSpanLine {
		return false
	}
	run := func(i int) (n int) {
		for i+n < len(line) && line[i+n] == '`' {
			n++
		}
		return n
	}
	for i := 0; i < at; {
		n := run(i)
		if n == 0 {
			i++
			continue
		}
		i += n
		for j := i; j < len(line); {
			m := run(j)
			if m == n {
				if at < j {
					return true
				}
				i = j + m
				break
			}
			j += max(m, 1)
		}
	}
	return false
}

// maxSpanLine is how long a line may be, in bytes, of which spans of code are looked for.
const maxSpanLine = 4 << 10

// maxOpeners is how many openers of a text are looked at.
const maxOpeners = 1024

// nextOpener is where the next opener begins; -1 if there is none.
func nextOpener(text string) int {
	for i := range len(text) {
		if (text[i] == '<' || text[i] == '[') && openerAt(text[i:]) > 0 {
			return i
		}
	}
	return -1
}

// openerAt is the length of the opener that text begins with; 0 if it begins with none.
func openerAt(text string) int {
	for _, o := range openers {
		if len(text) >= len(o) && strings.EqualFold(text[:len(o)], o) {
			return len(o)
		}
	}
	return 0
}

// maxWritten is how much of a text is read as one call, in bytes.
const maxWritten = 64 << 10

// writtenCall reads the call that text begins with. end is how much of text it is, as far as
// that is known.
func writtenCall(text string) (c Call, end int) {
	cut := len(text) > maxWritten
	text = text[:min(len(text), maxWritten)]
	c.Kind = CallWritten
	end = openerAt(text)
	if i := closerOf(text, end); i >= 0 {
		text, end, cut = text[:i], i, false
	} else if i := nextOpener(text[end:]); i >= 0 && !strings.HasPrefix(text[end:], ">") {
		text, cut = text[:end+i], false // another one begins
	}
	for _, read := range []func(string) (string, []byte){writtenParts, writtenJSON, writtenBare} {
		if c.Name == "" {
			c.Name, c.Arguments = read(text)
		}
	}
	tag := text[0] == '<' && text[1] < utf8.RuneSelf && text[1] != '|'
	if cut && c.Name != "" || c.Name == "" && !tag {
		c.Kind = CallOther
	}
	if len(c.Arguments) == 0 {
		c.Arguments = []byte("{}")
	}
	return c, end
}

// closerOf is where the element ends that text begins with; -1 where that cannot be seen.
func closerOf(text string, size int) int {
	if text[0] != '<' || text[1] == '|' {
		return -1
	}
	name := strings.TrimRight(text[1:size], " =")
	low := strings.ToLower(text)
	if len(low) != len(text) {
		low = text
	}
	if i := strings.Index(low[size:], "</"+strings.ToLower(name)); i >= 0 {
		return size + i
	}
	return -1
}

// writtenParts reads a call whose name stands in a tag, and its arguments in elements.
func writtenParts(text string) (name string, arguments []byte) {
	for _, before := range []string{"<invoke ", "<function="} {
		i := indexFold(text, before)
		if i < 0 {
			continue
		}
		tag, body, _ := strings.Cut(text[i+len(before):], ">")
		if before == "<invoke " {
			tag = attribute(tag)
		}
		if name = strings.Trim(strings.TrimSpace(tag), `"'`); !plainName(name) {
			return "", nil
		}
		if json := objectIn(body); json != nil && !strings.Contains(body[:strings.IndexByte(body, '{')], "<") {
			return name, json
		}
		return name, parameters(body)
	}
	return "", nil
}

func indexFold(text, what string) int {
	for i := 0; i+len(what) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(what)], what) {
			return i
		}
	}
	return -1
}

// attribute is the value of the attribute name of a tag.
func attribute(tag string) string {
	i := indexFold(tag, "name=")
	if i < 0 {
		return ""
	}
	v := strings.TrimSpace(tag[i+len("name="):])
	if v != "" && (v[0] == '"' || v[0] == '\'') {
		v, _, _ = strings.Cut(v[1:], v[:1])
	}
	return v
}

// plainName reports whether a text can be the name of a tool.
func plainName(s string) bool {
	return s != "" && len(s) <= 256 && utf8.ValidString(s) && !strings.ContainsAny(s, "<>{}\n\"'")
}

// parameters reads elements such as <parameter name="to">Ann</parameter> and
// <parameter=to>Ann</parameter> as one object.
func parameters(body string) []byte {
	var o object
	for {
		tag, value, rest := element(body, "<parameter")
		if rest == "" && tag == "" {
			return o.close()
		}
		name := strings.TrimPrefix(tag, "=")
		if name == tag {
			name = attribute(tag)
		}
		o.member(strings.Trim(name, `"'`), value)
		body = rest
	}
}

// pairs reads <arg_key>to</arg_key><arg_value>Ann</arg_value> as one object.
func pairs(body string) []byte {
	var o object
	for {
		tag, name, rest := element(body, "<arg_key")
		_, value, behind := element(rest, "<arg_value")
		if tag == "" && name == "" {
			return o.close()
		}
		o.member(strings.TrimSpace(name), value)
		body = behind
	}
}

// element is the first element of a text that begins so: what stands in its tag behind that,
// its text, and what stands behind it.
func element(text, begin string) (tag, inside, rest string) {
	i := indexFold(text, begin)
	if i < 0 {
		return "", "", ""
	}
	tag, text, _ = strings.Cut(text[i+len(begin):], ">")
	end := indexFold(text, "</"+begin[1:])
	if end < 0 {
		return tag, text, ""
	}
	return tag, text[:end], text[end:]
}

// An object is what such elements say.
type object struct {
	w    writer
	seen map[string]bool
}

func (o *object) member(name, value string) {
	if o.seen[name] || !plainName(name) || len(o.seen) == MaxCalls {
		return
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	} else {
		o.w.raw(",")
	}
	o.seen[name] = true
	o.w.text(name)
	o.w.with(":", strings.ToValidUTF8(strings.Trim(value, "\n"), "\ufffd"))
}

func (o *object) close() []byte { return append(append([]byte("{"), o.w.b...), '}') }

// writtenJSON reads a call whose name and arguments stand in an object.
func writtenJSON(text string) (name string, arguments []byte) {
	v := Parse(objectIn(text))
	if !v.Exists() {
		return looseName(text)
	}
	if fn := v.Get("function"); fn.Kind() == '{' {
		v = fn
	}
	for _, n := range []string{"name", "function", "tool_name", "tool"} {
		if s := v.Get(n); s.Kind() == '"' && plainName(s.Text()) {
			name = strings.Clone(s.Text())
			break
		}
	}
	for _, n := range []string{"arguments", "parameters", "input", "args"} {
		if a := v.Get(n); a.Kind() == '"' {
			return name, []byte(a.Text())
		} else if a.Exists() {
			return name, append([]byte(nil), a.Raw()...)
		}
	}
	return name, nil
}

// looseName reads a call whose object is cut off, or is not strict JSON. Its arguments are what
// stands there, which is no JSON either.
func looseName(text string) (name string, arguments []byte) {
	_, body, found := strings.Cut(text, "{")
	for _, mark := range []string{`"`, `'`} {
		_, behind, named := strings.Cut(body, mark+"name"+mark)
		behind = strings.TrimLeft(behind, " \t\r\n")
		if behind, colon := strings.CutPrefix(behind, ":"); found && named && colon {
			if behind = strings.TrimLeft(behind, " \t\r\n"); behind != "" {
				if name, _, _ = strings.Cut(behind[1:], behind[:1]); plainName(name) {
					return strings.Clone(name), []byte("{" + body)
				}
			}
		}
	}
	return "", nil
}

// writtenBare reads a call whose name stands behind the opener, before its arguments: an
// object, or pairs of <arg_key> and <arg_value>.
func writtenBare(text string) (name string, arguments []byte) {
	body := strings.TrimLeft(text[openerAt(text):], "> \t\r\n")
	n := strings.IndexAny(body, " \t\r\n<>[{")
	if n <= 0 || !plainName(body[:n]) {
		return "", nil
	}
	name, body = body[:n], strings.TrimSpace(body[n:])
	switch low := strings.ToLower(body); {
	case strings.HasPrefix(low, "{"), strings.HasPrefix(low, "[args]"):
		return name, objectIn(body)
	case strings.HasPrefix(low, "<arg_key>"):
		return name, pairs(body)
	}
	return "", nil
}

// objectIn is the first JSON object in a text; nil if there is none.
func objectIn(text string) []byte {
	begin := strings.IndexByte(text, '{')
	if begin < 0 {
		return nil
	}
	depth, quoted, slash := 0, false, false
	for i := begin; i < len(text); i++ {
		switch c := text[i]; {
		case quoted:
			quoted = c != '"' || slash
			slash = c == '\\' && !slash
		case c == '"':
			quoted, slash = true, false
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				if src := []byte(text[begin : i+1]); Parse(src).Exists() {
					return src
				}
				return nil
			}
		}
	}
	return nil
}
