// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	_ "embed"
	"slices"
	"sync"
)

// A Treatment says what mcp and faithful do with a token.
type Treatment uint8

const (
	Remove    Treatment = iota // both remove it
	RemoveMCP                  // mcp removes it, for faithful it is ambiguous
	Ambiguous                  // both note it, and act on it in a sequence of its template
)

// A Token is one control token of a model family's chat template. It counts as Text spells
// it, and in any case where it is disguised.
type Token struct {
	Family    string
	Text      string
	Treatment Treatment
	// Sequences are the sequences of a template in which a token counts that is ambiguous,
	// or that stands as an index or a type argument does, as the file of tokens writes them.
	Sequences []string
	// Unless turns them round: it is removed but in these sequences.
	Unless bool
	Why    string // for an exception

	Source  string // the published model and its file that spell it
	Package string // registry, name, version and path of the package that it was read from
	Read    string // the date of the last look, as YYYY-MM-DD

	kind   tokenKind
	index  int
	closer *Token // </name> of <name>, [/NAME] of [NAME]
	barred bool   // its name begins with a bar
	stem   int    // length up to the number that its name ends with
}

// A tokenKind says how a token is delimited, and so how it is found.
type tokenKind uint8

const (
	inAngles   tokenKind = iota // <name>
	asPrefix                    // <name= or <|name|, of which the rest is anything
	inBrackets                  // [name]
	asHeading                   // ### name:
	asLine                      // name: at the beginning of a line
	asLiteral                   // anything else
	ofShapes                    // one of the generic shapes
	numKinds
)

// builtinSource is the file of tokens that is part of this version.
//
//go:embed tokens_2026.12.txt
var builtinSource string

// Builtin returns the tokens that are part of this version.
var Builtin = sync.OnceValue(func() *TokenTable {
	t, err := parseTokens(nil, builtinSource)
	if err != nil {
		panic(err) // a test reads the same file
	}
	return t
})

// Tokens returns the tokens that are part of this version. spec: scrub/4.3
func Tokens() []Token { return Builtin().Tokens() }

// A TokenTable is a compiled, immutable list of control tokens, safe for
// concurrent use.
type TokenTable struct {
	version string
	tokens  []*Token
	varied  []string // names that count with a namespace, a suffix or attributes

	names    [numKinds]map[string]*Token // by the view of the name
	numbered [numKinds]map[string]*Token // names that end with any number
	partial  map[string]bool             // beginnings of prefixes that hold a blank
	wide     bool                        // a name holds characters that are not ASCII
	roles    []role
	opens    [256]bool // bytes, in either case and their doubles, that begin a role
	roleSet  nameSet   // of roles, and what is longer
	// What the names between delimiters may look like.
	angles, prefixes, partials, brackets nameSet

	spelled   spelled
	literals  []spelling
	heads     []string       // characters with which literals begin
	wideHeads []wideHead     // the same in characters that are not ASCII
	starts    [256]bool      // ASCII characters with which literals begin
	pairs     [128][256]bool // the first two bytes of texts that may spell literals
	unseen    []byte         // one of them is in a literal that holds no other opener
	plainEnd  byte           // ends the ASCII that needs no look at literals
	seqs      map[*Token][]tokenRow
	spares    map[*Token][]tokenRow // in which a token stays
	ofShape   []tokenRow            // that begin with any <|name|>
}

// Version returns the version of the table, "" where it has none.
func (t *TokenTable) Version() string { return t.version }

// Tokens returns a copy of the table, in its order.
func (t *TokenTable) Tokens() []Token {
	out := make([]Token, len(t.tokens))
	for i, tok := range t.tokens {
		out[i] = *tok
		out[i].Sequences = slices.Clone(tok.Sequences)
	}
	return out
}

// With returns a table of the tokens of t and of those that source, a file of
// tokens, adds. A spelling that both have is the one of source. The error, a
// *TokenFileError, lists every fault.
func (t *TokenTable) With(source string) (*TokenTable, error) { return parseTokens(t, source) }

// anyShape is the token that a generic shape stands for.
var anyShape = &Token{Family: "any", Text: "<|name|>", kind: ofShapes, barred: true}

// variedShape is a listed name with a namespace, a suffix or attributes.
var variedShape = &Token{Family: "any", Text: "<name:more>", kind: ofShapes}
