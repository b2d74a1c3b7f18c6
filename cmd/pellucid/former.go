// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// former has the verbs and flags that this build no longer has and that a page once showed, each with what to do
// now. A key is how a command line begins, and behind it the flag, if it is one.
var former = map[string]string{
	"ground import --format": "--format is gone: docs/examples/factcheck makes attestations of published fact checks",
	"ccr --score-url":        "--score-url is gone: name the model to ask again, with --url",
	"guard --workers":        "--workers is gone: leave it out, and each guard runs its own audits, four at a time",
}

// formerIn returns what to do in place of the former verb or flag in a command line.
func formerIn(args []string) (instead string, found bool) {
	for words, instead := range former {
		verb, flag, isFlag := strings.Cut(words, " --")
		begins := strings.HasPrefix(strings.Join(args, " ")+" ", verb+" ")
		if begins && (!isFlag || slices.ContainsFunc(args, func(arg string) bool { return arg == "--"+flag || strings.HasPrefix(arg, "--"+flag+"=") })) {
			return instead, true
		}
	}
	return "", false
}
