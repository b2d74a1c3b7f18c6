// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	celenv "cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// The types of what an expression can only ask, never take apart.
var (
	findingsType = types.NewOpaqueType("findings")
	scoresType   = types.NewOpaqueType("scores")
	sessionType  = types.NewOpaqueType("session")
	factsType    = cel.MapType(cel.StringType, cel.DynType)
)

// names are all names of variables, with their types. What is not here is no name.
var names = []struct {
	name string
	of   *cel.Type
}{
	{"direction", cel.StringType},
	{"server", cel.StringType},
	{"tool", cel.StringType},
	{"hints.read_only", cel.BoolType},
	{"hints.destructive", cel.BoolType},
	{"hints.open_world", cel.BoolType},
	{"privileged", cel.BoolType},
	{"findings", findingsType},
	{"severity", cel.IntType},
	{"not_inspected", cel.IntType},
	{"scores", scoresType},
	{"size", cel.IntType},
	{"trust.server", cel.DoubleType},
	{"trust.tool", cel.DoubleType},
	{"principal.scopes", cel.ListType(cel.StringType)},
	{claimsName, factsType},
	{argsName, factsType},
	{"session", sessionType},
	{"session.calls", cel.IntType},
	{"session.held", cel.IntType},
}

// standard are the functions of CEL that there are. None of them makes more of
// what it gets, and none depends on the time.
var standard = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.In, operators.Add, operators.Subtract, "startsWith", "endsWith", "contains", "matches", "size", operators.Index,
}

// literals are the functions whose argument is checked when a rule is compiled.
var literals = map[string]struct {
	want  string
	valid func(string) bool
}{
	"count":    {"the code of a finding", func(s string) bool { return finding.Code(s).Known() }},
	"class":    {"one of " + strings.Join(classes, ", "), func(s string) bool { return slices.Contains(classes, s) }},
	"of":       {"the name of a classifier", IsRuleName},
	"has":      {"the name of a classifier", IsRuleName},
	"calls_of": {"SERVER/TOOL", IsToolPath},
	"matches":  {"a regular expression", func(string) bool { return true }}, // which CEL has checked
}

var classes = []string{"hidden", "token", "markup", "uri", "schema", "other"}

// classOf is the class of a code, one of classes.
func classOf(c finding.Code) string {
	switch {
	case strings.HasPrefix(string(c), "hidden-"), c == finding.SuspiciousUnicode:
		return "hidden"
	case c == finding.ControlToken, c == finding.RoleMarker, c == finding.EncodedToken, c == finding.SplitAcrossBlocks,
		c == finding.FenceLookalike, c == finding.ForgedProvenance:
		return "token"
	case strings.HasPrefix(string(c), "markup-"):
		return "markup"
	case strings.HasPrefix(string(c), "uri-"):
		return "uri"
	case strings.HasPrefix(string(c), "schema-"), c == finding.Misshapen, c == finding.CaseVariant, c == finding.Violation:
		return "schema"
	}
	return "other"
}

// environment is what every expression is compiled in.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	subset := celenv.NewLibrarySubset().SetDisableMacros(true)
	for _, f := range standard {
		subset.AddIncludedFunctions(celenv.NewFunction(f))
	}
	member := func(name string, of *cel.Type, out *cel.Type, ask func(e *evaluation, arg string) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload(of.TypeName()+"_"+name, []*cel.Type{of, cel.StringType}, out,
			cel.BinaryBinding(func(self, arg ref.Val) ref.Val {
				e, s := asked(self), ""
				if v, ok := arg.(types.String); ok {
					s = string(v)
				}
				return ask(e, s)
			})))
	}
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(subset)),
		cel.ParserExpressionSizeLimit(MaxExpression), cel.ParserRecursionLimit(32), cel.ParserErrorRecoveryLimit(4),
		cel.Constant("info", cel.IntType, types.Int(1)), cel.Constant("warn", cel.IntType, types.Int(2)), cel.Constant("error", cel.IntType, types.Int(3)),
		member("count", findingsType, cel.IntType, (*evaluation).count),
		member("class", findingsType, cel.IntType, (*evaluation).class),
		member("of", scoresType, cel.DoubleType, (*evaluation).scoreOf),
		member("calls_of", sessionType, cel.IntType, func(e *evaluation, tool string) ref.Val { return types.Int(e.in.Session.CallsOf[tool]) }),
		member("has", scoresType, cel.BoolType, (*evaluation).hasScore),
		cel.Function("worst", cel.MemberOverload("scores_worst", []*cel.Type{scoresType}, cel.DoubleType,
			cel.UnaryBinding(func(self ref.Val) ref.Val { return asked(self).worst() }))),
	}
	for _, n := range names {
		options = append(options, cel.Variable(n.name, n.of))
	}
	return cel.NewCustomEnv(options...)
})

// bounds tells CEL how large what an input holds can be.
type bounds struct{}

func (bounds) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	path := n.Path()
	if len(path) == 0 {
		return nil
	}
	if isFacts(path[0]) {
		return &cost.SizeEstimate{Max: policy.MaxValue, Elem: &cost.SizeEstimate{Max: policy.MaxValue}}
	}
	switch n.Type().Kind() {
	case types.StringKind:
		return &cost.SizeEstimate{Max: MaxName}
	case types.ListKind:
		return &cost.SizeEstimate{Max: MaxScopes, Elem: &cost.SizeEstimate{Max: MaxName}}
	}
	return nil
}

// EstimateCallCost: a question to findings or scores looks at every entry once.
func (bounds) EstimateCallCost(function, overload string, _ *cost.AstNode, _ []cost.AstNode) *cost.CallEstimate {
	if strings.HasPrefix(overload, "findings_") || strings.HasPrefix(overload, "scores_") || strings.HasPrefix(overload, "session_") {
		return &cost.CallEstimate{CostEstimate: cost.Estimate{Min: 1, Max: askCost}}
	}
	return nil
}

// askCost is that of a question to findings, scores or session.
const askCost = 8

// compile compiles one expression; nil stands for the constant true. It adds to read what the expression reads. The
// problems do not say in which rule and member they are.
func compile(text string, read *reads) (cel.Program, []Problem) {
	env, err := environment()
	if err != nil {
		return nil, []Problem{{Fault: "CEL cannot be used: " + plain(err.Error())}}
	}
	checked, faults := Check(env, text)
	if faults != nil {
		return nil, faults
	}
	if e := checked.NativeRep().Expr(); e.Kind() == ast.LiteralKind && e.AsLiteral() == types.True {
		return nil, nil
	}
	faults, facts := append(checkLiterals(checked.NativeRep()), read.addPatterns(checked.NativeRep())...), read.factReads
	if faults = append(faults, read.addFacts(checked.NativeRep())...); faults != nil {
		return nil, faults
	}
	most := maxCost
	if read.factReads > facts {
		most = maxFactsCost
	}
	worst, err := env.EstimateCost(checked, bounds{})
	if err != nil {
		return nil, []Problem{{Line: 1, Column: 1, Fault: "its cost cannot be told: " + plain(err.Error())}}
	}
	if worst.Max > uint64(most) {
		return nil, []Problem{{Line: 1, Column: 1, Fault: "costs too much in the worst case: more than " + strconv.Itoa(most) + " units"}}
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if worst.Max > meterFrom {
		options = append(options, cel.CostLimit(uint64(most)))
	}
	p, err := env.Program(checked, options...)
	if err != nil {
		return nil, []Problem{{Line: 1, Column: 1, Fault: plain(err.Error())}}
	}
	return p, nil
}

// Check type-checks one expression, which has to make a boolean. The problems do not say in
// which rule and member they are.
func Check(env *cel.Env, text string) (*cel.Ast, []Problem) {
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		var out []Problem
		for _, e := range issues.Errors() {
			out = append(out, Problem{Line: max(e.Location.Line(), 1), Column: max(e.Location.Column(), 0) + 1, Fault: plain(e.Message)})
		}
		return nil, out
	}
	if of := checked.OutputType(); of != cel.BoolType {
		return nil, []Problem{{Line: 1, Column: 1, Fault: "want a boolean, not " + plain(of.String())}}
	}
	return checked, nil
}

// checkLiterals finds the arguments that no input could ever meet: a misspelt code is
// refused, and does not make a rule that never matches.
func checkLiterals(a *ast.AST) (out []Problem) {
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.KindMatcher(ast.CallKind)) {
		c := call.AsCall()
		l, checked := literals[c.FunctionName()]
		if !checked || len(c.Args()) == 0 {
			continue
		}
		arg := c.Args()[len(c.Args())-1]
		at := a.SourceInfo().GetStartLocation(arg.ID())
		fail := func(fault string) {
			out = append(out, Problem{Line: at.Line(), Column: at.Column() + 1, Fault: fault})
		}
		if arg.Kind() != ast.LiteralKind {
			fail("want " + l.want + " in quotes")
		} else if s, isText := arg.AsLiteral().(types.String); isText && !l.valid(string(s)) {
			fail("want " + l.want + ", not " + finding.Quote(string(s)))
		}
	}
	return out
}

// plain is a message of CEL's in printable ASCII: parts of the expression stand in it.
func plain(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 256 {
		s = s[:256]
	}
	q := strconv.QuoteToASCII(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// IsRuleName reports whether s may name a rule: 1 to 64 of a-z 0-9 -, the first a letter or digit.
func IsRuleName(s string) bool {
	return s != "" && len(s) <= 64 && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// A Problem is one mistake in a Source.
type Problem struct {
	Rule         int    // index in Source.Rules; -1: none of them
	Member       string // "name", "on", "when", "unless", "then", "profile", "question"; of no rule: "rules", "on_error"
	Line, Column int    // in the expression, from 1; 0: the member as a whole
	Fault        string // printable ASCII
}

// Problems are all mistakes in a Source.
type Problems []Problem

// Error lists them.
func (p Problems) Error() string {
	var b strings.Builder
	b.WriteString("policy: refused:")
	for _, x := range p {
		b.WriteString("\n  ")
		if x.Rule >= 0 {
			fmt.Fprintf(&b, "rules[%d].", x.Rule)
		}
		b.WriteString(x.Member)
		if x.Line > 0 {
			fmt.Fprintf(&b, ", line %d, column %d", x.Line, x.Column)
		}
		b.WriteString(": " + x.Fault)
	}
	return b.String()
}
