// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// The variables that hold values of a third party or of the caller.
const (
	argsName   = "args"
	claimsName = "principal.claims"
)

func isFacts(name string) bool { return name == argsName || name == claimsName }

// maxReads bounds the arguments, and the claims, that a policy may read: they are kept of each call.
const maxReads = 64

// maxMatching bounds the work of all regular expressions of a policy: instructions of their programs times bytes of
// the longest text.
const maxMatching = 10_000_000

// reads collects what the expressions of a policy read.
type reads struct {
	policy.Reads
	factReads    int // places where args or claims are read
	matchingWork int // see maxMatching
}

// addFacts adds the args and claims that one expression reads. It takes only literals as their names, so that it is
// known before a call comes what has to be kept of it.
func (r *reads) addFacts(a *ast.AST) (out []Problem) {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(a), ast.KindMatcher(ast.IdentKind)) {
		name := e.AsIdent()
		r.Session, r.Trust = r.Session || strings.HasPrefix(name, "session"), r.Trust || strings.HasPrefix(name, "trust.")
		if !isFacts(name) {
			continue
		}
		key, known := keyOf(e)
		at := a.SourceInfo().GetStartLocation(e.ID())
		fail := func(fault string) { out = append(out, Problem{Line: at.Line(), Column: at.Column() + 1, Fault: fault}) }
		list, want := &r.Claims, `want principal.claims["NAME"], or "NAME" in principal.claims`
		if name == argsName {
			list, want = &r.Args, `want args["/NAME"], a JSON pointer, or "/NAME" in args`
			known = known && IsPointer(key)
		}
		if !known || key == "" || len(key) > policy.MaxValue {
			fail(want)
			continue
		}
		if r.factReads++; !slices.Contains(*list, key) {
			if *list = append(*list, key); len(*list) > maxReads {
				fail(fmt.Sprintf("the policy reads more than %d of these", maxReads))
			}
		}
	}
	return out
}

// keyOf returns the literal name of what an expression reads of args or claims.
func keyOf(e ast.NavigableExpr) (key string, ok bool) {
	call, has := e.Parent()
	if !has || call.Kind() != ast.CallKind {
		return "", false
	}
	c := call.AsCall()
	if len(c.Args()) != 2 {
		return "", false
	}
	by := c.Args()[1]
	switch c.FunctionName() {
	case operators.Index:
	case operators.In:
		by = c.Args()[0]
	default:
		return "", false
	}
	if by.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := by.AsLiteral().(types.String)
	return string(s), ok
}

// IsPointer reports whether s is a JSON pointer (RFC 6901).
func IsPointer(s string) bool {
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return s == "" || s[0] == '/'
}

// IsToolPath reports whether s names a tool of a server.
func IsToolPath(s string) bool {
	server, tool, ok := strings.Cut(s, "/")
	return ok && server != "" && tool != "" && len(s) <= 2*MaxName
}

// addPatterns adds the work of the regular expressions of one expression.
func (r *reads) addPatterns(a *ast.AST) (out []Problem) {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher("matches")) {
		children := e.Children() // the text, and the expression
		arg := children[len(children)-1]
		if arg.Kind() != ast.LiteralKind {
			continue // refused already
		}
		s, _ := arg.AsLiteral().(types.String)
		tree, err := syntax.Parse(string(s), syntax.Perl)
		if err != nil {
			continue // CEL has said so
		}
		program, err := syntax.Compile(tree.Simplify())
		longest := 0
		for _, part := range ast.MatchDescendants(children[0], ast.KindMatcher(ast.IdentKind)) {
			if longest += MaxName; isFacts(part.AsIdent()) {
				longest += policy.MaxValue
			}
		}
		if err == nil {
			r.matchingWork += len(program.Inst) * longest
		}
		if err != nil || r.matchingWork > maxMatching {
			at := a.SourceInfo().GetStartLocation(arg.ID())
			out = append(out, Problem{Line: at.Line(), Column: at.Column() + 1, Fault: fmt.Sprintf(
				"the regular expressions of the policy do too much in the worst case: more than %d instructions times bytes", maxMatching)})
		}
	}
	return out
}

// An adapter converts values of Facts to values of CEL.
type adapter struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case policy.Unreadable:
		return unreadable
	case policy.Object:
		return object
	case []any:
		return types.NewDynamicList(a, v)
	}
	return a.Adapter.NativeToValue(v)
}

var native = adapter{types.DefaultTypeAdapter}

var (
	object     = &opaque{celType: types.NewOpaqueType("object")}
	unreadable = types.NewErr("policy: this value cannot be compared")
)

// factsOf returns args or claims as a value of CEL. If the call is not known, reading it is an error.
func (e *evaluation) factsOf(name string) ref.Val {
	switch f := e.in.Facts; {
	case f == nil:
		return types.NewErr("policy: the call is not known")
	case name == argsName:
		return types.NewStringInterfaceMap(native, f.Args)
	default:
		return types.NewStringInterfaceMap(native, f.Claims)
	}
}
