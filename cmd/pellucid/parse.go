// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// parse reads a command line into the fields that k was made of. It takes the steps of
// kong.Kong.Parse one by one, with checks of its own in the place of kong.Context.Validate.
//
// kong.Kong.Parse, kong.Context.Validate and kong.Context.Run look up methods by a name that
// is not a constant. Where a program can reach such a lookup, the linker keeps every exported
// method of every type in use, because it cannot know which of them is called: 5 MB of the
// binary. TestVerbs checks that no verb needs what is left out here.
func parse(k *kong.Kong, args []string) (*kong.Context, error) {
	ctx, err := kong.Trace(k, args)
	if err != nil {
		return nil, err
	}
	if ctx.Error != nil {
		return ctx, ctx.Error
	}
	if slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "help" }) {
		if err := ctx.PrintUsage(false); err != nil {
			return ctx, err
		}
		k.Exit(0)
	}
	if err := ctx.Reset(); err != nil {
		return ctx, err
	}
	if err := ctx.Resolve(); err != nil {
		return ctx, err
	}
	if _, err := ctx.Apply(); err != nil {
		return ctx, err
	}
	return ctx, validate(ctx)
}

// A runner is a verb; one that needs what kong knows of the command line is a tracedRunner.
type (
	runner       interface{ Run(e *env) error }
	tracedRunner interface {
		Run(e *env, ctx *kong.Context) error
	}
)

// runVerb runs the verb that the command line names.
func runVerb(e *env, ctx *kong.Context) error {
	switch verb := ctx.Selected().Target.Addr().Interface().(type) {
	case runner:
		return verb.Run(e)
	case tracedRunner:
		return verb.Run(e, ctx)
	}
	return fmt.Errorf("%s cannot be run", ctx.Selected().FullPath())
}

// validate checks the values of every command on the path, and what is missing.
func validate(ctx *kong.Context) error {
	selected, given := ctx.Model.Node, 0
	for _, p := range ctx.Path {
		if p.Positional != nil {
			given = p.Positional.Position + 1
		}
		if p.Command != nil {
			selected = p.Command
		}
	}
	for n := selected; n != nil; n = n.Parent {
		for _, v := range n.Values() {
			if v.Enum != "" && (v.Set || !v.Required) {
				if err := oneOf(v, v.Target); err != nil {
					return err
				}
			}
		}
		if err := validateFlags(n.Flags); err != nil {
			return err
		}
	}
	if err := missing(selected, given); err != nil {
		return err
	}
	for n := selected; n != nil; n = n.Parent {
		if err := validateFields(n.Target); err != nil && n.Parent != nil {
			if n.Parent.DefaultCmd == n {
				n = n.Parent // its name may be left out
			}
			return fmt.Errorf("%s: %w", n.Path(), err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// oneOf checks a value against the words that it may be.
func oneOf(v *kong.Value, target reflect.Value) error {
	if target.Kind() == reflect.Slice {
		for i := range target.Len() {
			if err := oneOf(v, target.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	got, words := fmt.Sprint(target), v.EnumSlice()
	if slices.Contains(words, got) {
		return nil
	}
	for i, w := range words {
		words[i] = strconv.Quote(w)
	}
	return fmt.Errorf("%s must be one of %s but got %q", v.ShortSummary(), strings.Join(words, ","), got)
}

// validateFields calls validate of a command and of the structs that are embedded in it.
func validateFields(command reflect.Value) error {
	if v, ok := command.Addr().Interface().(interface{ validate() error }); ok {
		if err := v.validate(); err != nil {
			return err
		}
	}
	for i := range command.NumField() {
		field := command.Type().Field(i)
		_, embedded := field.Tag.Lookup("embed")
		if field.IsExported() && (embedded || field.Anonymous) && field.Type.Kind() == reflect.Struct {
			if err := validateFields(command.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// validateFlags refuses flags that exclude one another, and says which are missing.
func validateFlags(flags []*kong.Flag) error {
	var missing []string
	chosen := map[string]string{}
	for _, f := range flags {
		if f.Required && !f.Set {
			missing = append(missing, f.Summary())
		}
		for _, group := range f.Xor {
			if first := chosen[group]; f.Set && first != "" {
				return fmt.Errorf("--%s and --%s can't be used together", first, f.Name)
			}
			if f.Set {
				chosen[group] = f.Name
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
	}
	return nil
}

// missing says which arguments or which of its verbs the selected command lacks, where given
// is the number of arguments that it has.
func missing(n *kong.Node, given int) error {
	var want []string
	for _, arg := range n.Positional[given:] {
		if arg.Required {
			want = append(want, arg.Summary())
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("expected %q", strings.Join(want, " "))
	}
	for _, child := range n.Children {
		if !child.Hidden {
			want = append(want, strconv.Quote(child.Name))
		}
	}
	switch {
	case len(want) == 0:
		return nil
	case len(want) == 1:
		return errors.New("expected " + want[0])
	case len(want) > 5:
		want = append(want[:5], "...")
	}
	return fmt.Errorf("expected one of %s", strings.Join(want, ", "))
}
