// SPDX-License-Identifier: Apache-2.0

package values

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	celenv "cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// standard are the functions of CEL that there are, beside those of environment. None depends
// on the time.
var standard = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.NotStrictlyFalse,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.In, operators.Index, operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Negate,
	"startsWith", "endsWith", "contains", "matches", "size",
}

// environment is what conditions are compiled in.
func environment(lists map[string][]string) (*cel.Env, error) {
	subset := celenv.NewLibrarySubset().AddIncludedMacros(operators.Has, operators.All, operators.Exists)
	for _, f := range standard {
		subset.AddIncludedFunctions(celenv.NewFunction(f))
	}
	sets := map[string]map[string]bool{}
	for name, values := range lists {
		set := make(map[string]bool, len(values))
		for _, v := range values {
			set[v] = true
		}
		sets[name] = set
	}
	text := func(name string, of func(string) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.Overload("values_"+name, []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(func(v ref.Val) ref.Val {
			if s, ok := v.(types.String); ok {
				return of(string(s))
			}
			return types.NewErr("values: %s wants a text", name)
		})))
	}
	words := cel.MapType(cel.StringType, cel.StringType)
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(subset)), cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(expr.MaxExpression), cel.ParserRecursionLimit(32), cel.ParserErrorRecoveryLimit(4),
		cel.Variable("tool", cel.StringType), cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("origin", words), cel.Variable("form", words), cel.Variable("sources", cel.MapType(cel.StringType, cel.ListType(cel.StringType))),
		text("host", host), text("domain", domain),
		cel.Function("double", cel.Overload("values_double", []*cel.Type{cel.DynType}, cel.DoubleType, cel.UnaryBinding(number))),
		cel.Function("listed", cel.Overload("values_listed", []*cel.Type{cel.StringType, cel.DynType}, cel.BoolType, cel.BinaryBinding(func(name, v ref.Val) ref.Val {
			n, _ := name.(types.String)
			if s, ok := v.(types.String); ok {
				return types.Bool(sets[string(n)][string(s)])
			}
			return types.NewErr("values: listed wants a text")
		}))),
	)
}

// condition compiles one condition.
func condition(env *cel.Env, text string, lists map[string][]string) (cel.Program, []expr.Problem) {
	checked, faults := expr.Check(env, text)
	if faults != nil {
		return nil, faults
	}
	tree := checked.NativeRep()
	for _, call := range ast.MatchDescendants(ast.NavigateAST(tree), ast.KindMatcher(ast.CallKind)) {
		c := call.AsCall()
		if c.FunctionName() != "listed" || len(c.Args()) != 2 {
			continue
		}
		at := tree.SourceInfo().GetStartLocation(c.Args()[0].ID())
		name := ""
		if c.Args()[0].Kind() == ast.LiteralKind {
			name, _ = c.Args()[0].AsLiteral().Value().(string)
		}
		if _, ok := lists[name]; !ok {
			faults = append(faults, expr.Problem{Line: at.Line(), Column: at.Column() + 1,
				Fault: "want the name of one of guard.lists in quotes, not " + finding.Quote(name)})
		}
	}
	if faults != nil {
		return nil, faults
	}
	p, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return nil, []expr.Problem{{Line: 1, Column: 1, Fault: "cannot be evaluated"}}
	}
	return p, nil
}

// number is a number, or a text that writes one in decimal digits. Every other spelling fails:
// a tool may read "1,000" or "NaN" in another way.
func number(v ref.Val) ref.Val {
	switch v := v.(type) {
	case types.Double:
		return v
	case types.Int:
		return types.Double(v)
	case types.String:
		if s := strings.TrimSpace(string(v)); isDecimal(s) {
			if f, err := strconv.ParseFloat(s, 64); err == nil {
				return types.Double(f)
			}
		}
	}
	return types.NewErr("values: double wants a number")
}

// isDecimal reports whether s is a sign or none, up to 300 digits, and up to 300 more behind a
// point. As a regular expression its counts would take 2 ms at each start of the program.
func isDecimal(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	whole, fraction, point := strings.Cut(s, ".")
	return isDigits(whole) && (!point || isDigits(fraction))
}

func isDigits(s string) bool {
	return 0 < len(s) && len(s) <= 300 && strings.Trim(s, "0123456789") == ""
}

// host is the host of a URL or of a host with or without a port, in lower case. What two
// programs may read in two ways fails.
func host(s string) ref.Val {
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil || strings.ContainsAny(s, "\\ \t\r\n") || u.Opaque != "" {
		return types.NewErr("values: host wants a URL")
	}
	if name := plainHost(u.Hostname()); name != "" && (u.Port() != "" || !strings.HasSuffix(u.Host, ":")) {
		return types.String(name)
	}
	return types.NewErr("values: host wants a URL")
}

// domain is what stands behind the @ of a mail address, in lower case.
func domain(s string) ref.Val {
	local, after, ok := strings.Cut(s, "@")
	if name := plainHost(after); ok && local != "" && name != "" && !strings.ContainsAny(local, "<>,;:\"\\ \t\r\n") {
		return types.String(name)
	}
	return types.NewErr("values: domain wants a mail address")
}

// plainHost is a host of ASCII letters, digits, dots and hyphens, or an IP address; else "".
func plainHost(s string) string {
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if ip := net.ParseIP(s); ip != nil {
		return ip.String()
	}
	if s == "" || len(s) > 253 || slices.Contains(strings.Split(s, "."), "") || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" {
		return ""
	}
	return s
}
