// SPDX-License-Identifier: Apache-2.0

// Package commandline parses the command line of a program, and reports to a person what went wrong.
package commandline

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/logs"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Options are the options of a parser for a program.
func Options(program, description string, stdout, stderr io.Writer) []kong.Option {
	return []kong.Option{
		kong.Name(program),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.Exit(os.Exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(decodeTime)),
		kong.TypeMapper(reflect.TypeFor[slog.Level](), kong.MapperFunc(decodeLevel)),
		kong.Vars{"log_levels": strings.Join(logs.Levels, ", ")},
	}
}

// Report tells a person what went wrong, if anything did, and returns the exit code.
func Report(program string, stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if err = exit.Unwritten(err); err.Error() != "" {
		fmt.Fprintf(stderr, "%s: %s\n", program, terminal.Printable(terminal.Plain(err.Error())))
	}
	var coded *exit.Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return exit.Failed
}

// SayForClient tells a person who has started what a client starts why nothing happens.
func SayForClient(stdin io.Reader, stderr io.Writer, verb string) {
	if terminal.ReadsTerminal(stdin) {
		fmt.Fprintf(stderr, "%s waits for a client that speaks MCP on standard input: a client's configuration starts it. Ctrl-C ends it.\n", verb)
	}
}
