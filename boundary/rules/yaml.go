// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// Bounds of a file. The parser's time grows with the square of tokens and depth.
const (
	maxFile   = 256 << 10 // bytes
	maxTokens = 32_768
	maxDepth  = 12 // brackets, or dashes on one line
)

// A kind is what a value of the file is.
type kind string

const (
	isText   kind = "a string"
	isNumber kind = "a number"
	isBool   kind = "a boolean"
	isNull   kind = "nothing"
	isList   kind = "a list"
	isObject kind = "an object"
)

// A node is a value of the file: what is left of YAML once all that can mean two
// things is refused.
type node struct {
	kind      kind
	line, col int
	text      string // of a scalar; of a number and a boolean as it is spelled
	names     []*node
	elements  []*node // of a list; of an object in the order of names
	setting   string  // of a command line, that gave it in place of the file; "" for a value of the file
}

// parseYAML reads src, or says why not. There are no anchors, aliases, merges,
// tags, directives, complex keys and further documents.
func parseYAML(src []byte) (*node, Problems) {
	if terminal.IsUTF16(src) {
		return nil, Problems{{Fault: terminal.ErrUTF16.Error()}}
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	if len(text) > maxFile {
		return nil, Problems{{Fault: fmt.Sprintf("the file is longer than %d bytes", maxFile)}}
	}
	if p := checkCharacters(text); p != nil {
		return nil, p
	}
	return parseTokens(strings.ReplaceAll(text, "\r\n", "\n")) // the lexer counts some of these as two lines
}

// parseTokens hands to the parser only what it copes with.
func parseTokens(text string) (n *node, p Problems) {
	defer func() {
		if recover() != nil { // a bug of the parser must not end the gateway
			n, p = nil, Problems{{Fault: "this is YAML that the parser cannot cope with"}}
		}
	}()
	tokens := lexer.Tokenize(text)
	if p := append(checkTokens(tokens), checkEscapes(text, tokens)...); p != nil {
		return nil, p.sorted()
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Problems{syntaxProblem(err)}
	}
	switch {
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return &node{kind: isObject}, nil
	case len(file.Docs) > 1:
		return nil, Problems{{Fault: "there is more than one document in the file"}}
	}
	c := converter{}
	n = c.node(file.Docs[0].Body)
	return n, c.problems
}

// maxUnseen bounds how many characters are told of: a file that has more is hardly text.
const maxUnseen = 16

// checkCharacters refuses what an editor does not show, so that what people have
// read is what applies.
func checkCharacters(text string) (p Problems) {
	line, start := 1, 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		fault := ""
		switch {
		case r == utf8.RuneError && n == 1:
			fault = "this is no UTF-8"
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"):
		case ucd.ClassOf(r) != ucd.NotHidden:
			fault = fmt.Sprintf("a hidden character, U+%04X: write it as an escape in double quotes", r)
		}
		if fault != "" {
			p = append(p, Problem{line: line, column: utf8.RuneCountInString(text[start:i]) + 1, Fault: fault})
			if len(p) == maxUnseen {
				return append(p, Problem{Fault: "more such characters follow: is it the right file?"})
			}
		}
		i += n
		if r == '\n' {
			line, start = line+1, i
		}
	}
	return p
}

// refusedTokens is the YAML that only makes a file harder to read.
var refusedTokens = map[token.Type]string{
	token.AnchorType:     "anchors are not allowed",
	token.AliasType:      "aliases are not allowed: a string that begins with * stands in quotes",
	token.MergeKeyType:   "merge keys are not allowed",
	token.TagType:        "tags are not allowed: a string that begins with ! stands in quotes",
	token.DirectiveType:  "directives are not allowed",
	token.MappingKeyType: "complex keys are not allowed",
}

func checkTokens(tokens token.Tokens) (p Problems) {
	if len(tokens) > maxTokens {
		return Problems{{Fault: fmt.Sprintf("the file has more than %d tokens", maxTokens)}}
	}
	depth, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			dashes++
		}
		if depth > maxDepth || dashes > maxDepth {
			return append(p, Problem{line: line, column: t.Position.Column, Fault: "this is nested too deeply"})
		}
		if fault := refusedTokens[t.Type]; fault != "" {
			p = append(p, Problem{line: line, column: t.Position.Column, Fault: fault})
		}
	}
	return p
}

// escapeHint is for paths of Windows.
const escapeHint = "in double quotes a backslash begins an escape: write a path of Windows in single quotes, or with /"

var (
	// escape is what follows a backslash in double quotes. The parser takes any characters for the digits of one.
	escape = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)\\(?:x[[:xdigit:]]{2}|u[[:xdigit:]]{4}|U[[:xdigit:]]{8}|[^xuU])`)
	})
	// doubleQuoted is a string in double quotes, as it stands in the file.
	doubleQuoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^"(?:[^"\\]|\\.)*"`) })
	// drivePath is the begin of a path of Windows whose backslash was meant as one.
	drivePath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^"[A-Za-z]:\\[^\\/]`) })
)

// checkEscapes refuses escapes that mean something else than they seem to: the parser reads "C:\up" as another
// character, and "C:\new" as the end of a line.
func checkEscapes(text string, tokens token.Tokens) (p Problems) {
	line, column := 1, 1 // of the text that is left
	for _, t := range tokens {
		for text != "" && (line < t.Position.Line || line == t.Position.Line && column < t.Position.Column) {
			r, n := utf8.DecodeRuneInString(text)
			text, column = text[n:], column+1
			if r == '\n' {
				line, column = line+1, 1
			}
		}
		if t.Type != token.DoubleQuoteType && t.Type != token.InvalidType { // as one is whose last quote became a digit
			continue
		}
		raw := doubleQuoted().FindString(text)
		if drivePath().MatchString(raw) || strings.Contains(escape().ReplaceAllString(raw, ""), `\`) {
			p = append(p, Problem{line: t.Position.Line, column: t.Position.Column, Fault: escapeHint})
		}
	}
	return p
}

const printable = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ',.:()[]{}-\\"

// syntaxProblem takes over where the parser stopped. Of its messages only those
// are taken that hold nothing of the file.
func syntaxProblem(err error) Problem {
	p := Problem{Fault: "this is not valid YAML"}
	var e yaml.Error
	if !errors.As(err, &e) {
		return p
	}
	m := strings.ReplaceAll(e.GetMessage(), "\t", `\t`)
	if !strings.Contains(m, `"`) && strings.Trim(m, printable) == "" {
		p.Fault += ": " + m
	}
	if strings.Contains(m, "escape") {
		p.Fault += ": " + escapeHint
	}
	if t := e.GetToken(); t != nil && t.Position != nil {
		p.line, p.column = t.Position.Line, t.Position.Column
	}
	return p
}

type converter struct{ problems Problems }

func (c *converter) node(from ast.Node) *node {
	n := &node{kind: isNull}
	if from == nil {
		return n
	}
	if t := from.GetToken(); t != nil && t.Position != nil {
		n.line, n.col = t.Position.Line, t.Position.Column
	}
	switch x := from.(type) {
	case *ast.MappingNode:
		n.kind = isObject
		for _, v := range x.Values {
			c.member(n, v)
		}
	case *ast.MappingValueNode:
		n.kind = isObject
		c.member(n, x)
	case *ast.SequenceNode:
		n.kind = isList
		for _, v := range x.Values {
			n.elements = append(n.elements, c.node(v))
		}
	case *ast.StringNode:
		n.kind, n.text = isText, x.Value
	case *ast.LiteralNode:
		n.kind, n.text = isText, x.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = isNumber, x.GetToken().Value
	case *ast.BoolNode:
		n.kind, n.text = isBool, x.GetToken().Value
	case *ast.NullNode:
	default:
		c.problems = append(c.problems, Problem{line: n.line, column: n.col, Fault: "this YAML is not allowed here"})
	}
	if n.kind == isText && !utf8.ValidString(n.text) {
		c.problems = append(c.problems, Problem{line: n.line, column: n.col, Fault: "an escape that makes no UTF-8"})
	}
	return n
}

func (c *converter) member(of *node, v *ast.MappingValueNode) {
	name := c.node(v.Key)
	if name.kind != isText {
		c.problems = append(c.problems, Problem{line: name.line, column: name.col,
			Fault: "a name that is " + string(name.kind) + ": put it in quotes"})
	}
	val := c.node(v.Value)
	if val.kind != isText && val.kind != isNumber && val.kind != isBool || val.line == 0 {
		val.line, val.col = name.line, name.col // where the parser's own is the first thing inside
	}
	if len(of.names) == 0 && (of.line == 0 || of.line == name.line && of.col > name.col) {
		of.line, of.col = name.line, name.col // not where the colon is
	}
	of.names, of.elements = append(of.names, name), append(of.elements, val)
}
