// SPDX-License-Identifier: Apache-2.0

package commandline

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/logs"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// What kong says of a flag that wants a number, and of one behind which nothing stands,
// or something that begins with a dash.
var (
	notANumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`expected a valid [0-9]+ bit [a-z]+ but got`) })
	noValue    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`expected [a-z]+ value but got "EOL" \(<EOL>\)`) })
	dashed     = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`expected [a-z]+ value but got .* flag\); perhaps try (.*)\?$`)
	})
)

// Usage is what kong says of a command line, in the words of its reader: without the
// empty value by which a flag that has a choice may be left out, and with the place
// where the right words stand.
func Usage(err error) error {
	if now := exit.Unwritten(err); now != err { // --help writes too
		return now
	}
	says := strings.NewReplacer(`,""`, "", `"",`, "").Replace(err.Error())
	wrong, parsed := errors.AsType[*kong.ParseError](err)
	if parsed && wrong.Context.Selected() != nil {
		if n := wrong.Context.Selected(); n.Parent.DefaultCmd == n { // its name may be left out
			says = strings.Replace(says, n.Path()+": ", n.Parent.Path()+": ", 1)
		}
	}
	says = notANumber().ReplaceAllString(says, "want a number, not")
	says = noValue().ReplaceAllString(says, "a value is missing")
	says = dashed().ReplaceAllString(says, "a value is missing; one that begins with a dash is written $1")
	if parsed && misspelt(says) {
		says += ": see " + commandOf(wrong.Context) + " --help"
	}
	return errors.New(says)
}

// misspelt reports whether kong has found a word that it does not know, or misses one.
// What a verb itself refuses says what to do.
func misspelt(says string) bool {
	for _, begin := range []string{"unknown flag ", "unexpected argument ", "expected ", "missing flags: "} {
		if strings.HasPrefix(says, begin) {
			return !strings.Contains(says, " or a configuration")
		}
	}
	return false
}

// commandOf is how far kong has understood a command line.
func commandOf(ctx *kong.Context) string {
	name := ctx.Model.Name
	for _, step := range ctx.Path {
		if step.Command != nil {
			name += " " + step.Command.Name
		}
	}
	return name
}

// decodeDuration reads a time, and says how one is written.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	return decodeWord(ctx, target, "want a time such as 30s, 10m or 2h", time.ParseDuration)
}

// decodeTime reads a point in time.
func decodeTime(ctx *kong.DecodeContext, target reflect.Value) error {
	return decodeWord(ctx, target, "want a time as RFC 3339 writes it, such as 2026-04-25T10:00:00Z", func(s string) (time.Time, error) {
		return time.Parse(time.RFC3339, s)
	})
}

// decodeLevel reads the least level of a log.
func decodeLevel(ctx *kong.DecodeContext, target reflect.Value) error {
	return decodeWord(ctx, target, "want one of "+strings.Join(logs.Levels, ", "), func(s string) (l slog.Level, err error) {
		if !slices.Contains(logs.Levels, strings.ToLower(s)) {
			return l, errors.ErrUnsupported
		}
		return l, l.UnmarshalText([]byte(s))
	})
}

// decodeWord reads one word of the command line.
func decodeWord[T any](ctx *kong.DecodeContext, target reflect.Value, want string, parse func(string) (T, error)) error {
	var word string
	if err := ctx.Scan.PopValueInto("value", &word); err != nil {
		return err
	}
	v, err := parse(word)
	if err != nil {
		return fmt.Errorf("%s, not %s", want, finding.Quote(word))
	}
	target.Set(reflect.ValueOf(v))
	return nil
}
