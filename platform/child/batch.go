// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"path/filepath"
	"strings"
	"unicode/utf16"
)

// Windows runs a batch file, such as npx.cmd, by cmd.exe, which reads the command line again: an argument with & or > in it
// would be cut there, and its rest be run.

// isBatch reports whether Windows runs the file at path by cmd.exe. It ignores dots and blanks at the end of a name.
func isBatch(path string) bool {
	ending := filepath.Ext(strings.TrimRight(path, ". "))
	return strings.EqualFold(ending, ".bat") || strings.EqualFold(ending, ".cmd")
}

var (
	errBatchArgument = errors.New("an argument has a line break or a NUL in it, which no batch file can be given: name the program that the batch file starts")
	errBatchLine     = errors.New("the command line is longer than the 8,191 characters that cmd.exe takes: name the program that the batch file starts")
)

// maxBatchLine is the most that cmd.exe takes, in UTF-16.
const maxBatchLine = 8191

// batchLine returns the command line by which cmd.exe, at shell, runs a batch file so that what the file starts with %*
// gets the arguments as they are. The options set what the registry or the line may have changed: extensions, which quoting
// of % needs, no variables between exclamation marks, no commands of its own, and no guess about the outer quotes.
func batchLine(shell, script string, args []string) (string, error) {
	var w batchWriter
	w.word(script)
	for _, arg := range args {
		if strings.ContainsAny(arg, "\x00\r\n") {
			return "", errBatchArgument
		}
		w.WriteByte(' ')
		w.word(arg)
	}
	line := `"` + shell + `" /e:ON /v:OFF /d /s /c "` + w.String() + `"`
	if len(utf16.Encode([]rune(line))) > maxBatchLine {
		return "", errBatchLine
	}
	return line, nil
}

// A batchWriter writes words for two readers. For both, a quote begins or ends a quoted part. But \" is text for the program
// that gets the words, and a quote all the same for cmd.exe. A character such as & is text for cmd.exe within quotes only,
// and a blank for the program. So after an odd number of \" one of the two is within quotes while the other is not, and a
// further quote changes that for both: it is written where the next character needs it. The usual "" for a quote
// within quotes would be simpler, but programs disagree about what follows it.
type batchWriter struct {
	strings.Builder
	shellQuoted, programQuoted bool
	backslashes                int // that were just written: a quote after them halves their number
}

const (
	// plainInBatch has the characters that mean nothing to cmd.exe, to batch files, and to programs.
	plainInBatch = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#$*+-./:?@_\\"
	// percentInBatch becomes a %: cmd.exe puts nothing in the place of what begins with the second of its three.
	percentInBatch = "%%cd:~,%"
)

func (w *batchWriter) word(s string) {
	if w.backslashes = 0; s == "" {
		w.WriteString(`""`)
		return
	}
	if strings.Trim(s, plainInBatch) != "" && !w.shellQuoted {
		w.toggle()
	}
	for _, c := range s {
		blank := c == ' ' || c == '\t'
		switch {
		case c == '"':
			w.WriteString(strings.Repeat(`\`, w.backslashes+1) + `"`)
			w.shellQuoted, w.backslashes = !w.shellQuoted, 0
			continue
		case blank && !w.programQuoted, !blank && !w.shellQuoted && !strings.ContainsRune(plainInBatch, c):
			w.toggle()
		}
		if c == '%' {
			w.WriteString(percentInBatch)
		} else {
			w.WriteRune(c)
		}
		if w.backslashes++; c != '\\' {
			w.backslashes = 0
		}
	}
	if w.programQuoted {
		w.toggle()
	}
}

// toggle writes a quote that begins or ends a quoted part.
func (w *batchWriter) toggle() {
	w.WriteString(strings.Repeat(`\`, w.backslashes) + `"`)
	w.shellQuoted, w.programQuoted, w.backslashes = !w.shellQuoted, !w.programQuoted, 0
}
