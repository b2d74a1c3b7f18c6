// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// yamlReader makes nodes of a YAML file. The parser says where a value begins; where it ends
// is found here.
type yamlReader struct {
	src   []byte
	lines []int // where each line begins
}

var errYAML = errors.New("it is not valid YAML")

// invalidYAML says in which line the parser stopped: it tells no column.
func invalidYAML(err error) error {
	if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%w: line %s", errYAML, m[1])
	}
	return errYAML
}

var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: line ([0-9]{1,7}):`) })

// parseYAML reads a YAML file of one document.
func parseYAML(src []byte) (root *node, err error) {
	defer func() {
		if recover() != nil { // a bug of the parser must not end the program
			root, err = nil, errYAML
		}
	}()
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(src))
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &node{kind: '{', start: -1, end: -2}, nil
	case err != nil: // its text may hold third-party text
		return nil, invalidYAML(err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	r := &yamlReader{src: src, lines: []int{0}}
	for i := 0; i < len(src); {
		c, n := utf8.DecodeRune(src[i:])
		i += n
		if c == '\n' || c == '\r' && !bytes.HasPrefix(src[i:], []byte("\n")) || c == 0x85 || c == 0x2028 || c == 0x2029 {
			r.lines = append(r.lines, i)
		}
	}
	if len(doc.Content) != 1 {
		return nil, errYAML
	}
	return r.node(doc.Content[0], 0)
}

// at is the offset of a position that the parser gives, in characters.
func (r *yamlReader) at(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(r.lines) {
		return -1
	}
	i := r.lines[n.Line-1]
	if i == 0 && bytes.HasPrefix(r.src, []byte("\xef\xbb\xbf")) {
		i += 3
	}
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(r.src[i:])
		i += size
	}
	return i
}

// node reads a value. Its lines are indented by more than indent.
func (r *yamlReader) node(y *yaml.Node, indent int) (*node, error) {
	n := &node{start: r.at(y), odd: y.Anchor != "" || y.Style&yaml.TaggedStyle != 0}
	n.end = n.start - 1
	var err error
	switch y.Kind {
	case yaml.MappingNode:
		n.kind, n.flow = '{', y.Style&yaml.FlowStyle != 0
		err = r.mapping(n, y)
	case yaml.SequenceNode:
		n.kind, n.flow = '[', y.Style&yaml.FlowStyle != 0
		for _, c := range y.Content {
			e, err := r.node(c, indent)
			if err != nil {
				return nil, err
			}
			n.elements = append(n.elements, e)
			if n.end = e.end; !e.known() {
				n.end = n.start - 1
			}
		}
	case yaml.ScalarNode:
		r.scalar(n, y, indent)
		return n, nil
	default:
		return n, nil // an alias: of kind 0
	}
	if err != nil {
		return nil, err
	}
	if n.flow {
		n.end = r.closing(n, map[byte]byte{'{': '}', '[': ']'}[n.kind])
	}
	return n, nil
}

func (r *yamlReader) mapping(n *node, y *yaml.Node) error {
	seen := map[string]bool{}
	column := y.Column - 1
	if len(y.Content) > 0 && !n.flow {
		n.start, column = r.at(y.Content[0]), y.Content[0].Column-1
		n.end = n.start - 1
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		name := y.Content[i]
		key, err := r.node(name, column)
		if err != nil {
			return err
		}
		if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!merge" || !key.known() {
			n.odd = true
		}
		if seen[name.Value] {
			return errTwice
		}
		seen[name.Value] = true
		value, err := r.node(y.Content[i+1], column)
		if err != nil {
			return err
		}
		if empty := y.Content[i+1]; empty.Kind == yaml.ScalarNode && empty.Value == "" && empty.Style == 0 && key.known() {
			colon := bytes.IndexByte(r.src[key.end:], ':')
			value.start = key.end + colon + 1
			value.end = value.start
		}
		n.members = append(n.members, member{name: name.Value, key: key, from: key.start, value: value})
		if n.end = value.end; !value.known() {
			n.end = n.start - 1
		}
	}
	return nil
}

func (r *yamlReader) scalar(n *node, y *yaml.Node, indent int) {
	n.text = y.Value
	switch y.ShortTag() {
	case "!!str":
		n.kind = '"'
	case "!!bool":
		if n.kind = 'f'; strings.EqualFold(y.Value, "true") {
			n.kind = 't'
		}
	case "!!null":
		n.kind = 'n'
	default:
		n.kind = '0'
	}
	rest := r.src[min(max(n.start, 0), len(r.src)):]
	switch {
	case n.start < 0 || n.odd:
	case y.Style&yaml.DoubleQuotedStyle != 0:
		n.end = n.start + quotedEnd(rest, '"')
	case y.Style&yaml.SingleQuotedStyle != 0:
		n.end = n.start + quotedEnd(rest, '\'')
	case y.Style == 0 && bytes.HasPrefix(rest, []byte(y.Value)):
		n.end = n.start + len(y.Value)
	default: // on several lines
		n.odd = n.kind != '"'
		n.end = r.lastLine(y.Line, indent)
	}
}

// quotedEnd is where a string in quotes ends, -1 if it does not begin with the quote.
func quotedEnd(src []byte, quote byte) int {
	if len(src) == 0 || src[0] != quote {
		return -1
	}
	for i := 1; i < len(src); i++ {
		switch {
		case quote == '"' && src[i] == '\\':
			i++
		case src[i] == quote && quote == '\'' && i+1 < len(src) && src[i+1] == quote:
			i++
		case src[i] == quote:
			return i + 1
		}
	}
	return -1
}

// lastLine is the end of the last line behind line that is indented by more than indent.
func (r *yamlReader) lastLine(line, indent int) int {
	end := -1
	for i := line - 1; i < len(r.lines); i++ {
		stop := len(r.src)
		if i+1 < len(r.lines) {
			stop = r.lines[i+1]
		}
		text := r.src[r.lines[i]:stop]
		body := bytes.TrimLeft(text, " ")
		if len(bytes.TrimSpace(body)) == 0 {
			continue
		}
		if i >= line && len(text)-len(body) <= indent {
			break
		}
		end = r.lines[i] + len(bytes.TrimRight(text, " \t\r\n"))
	}
	return end
}

// closing is where an object or list in brackets ends: behind the first bracket that stands
// neither in a value nor in a comment.
func (r *yamlReader) closing(n *node, bracket byte) int {
	at := n.start + 1
	for _, m := range n.members {
		if at = m.value.end; !m.value.known() {
			return n.start - 1
		}
		at = max(at, m.key.end)
	}
	for _, e := range n.elements {
		if at = e.end; !e.known() {
			return n.start - 1
		}
	}
	for ; at < len(r.src); at++ {
		switch c := r.src[at]; {
		case c == bracket:
			return at + 1
		case c == '#':
			next := bytes.IndexByte(r.src[at:], '\n')
			if next < 0 {
				return n.start - 1
			}
			at += next
		case strings.IndexByte(" \t\r\n,:", c) < 0:
			return n.start - 1
		}
	}
	return n.start - 1
}
