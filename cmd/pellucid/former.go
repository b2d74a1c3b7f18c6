// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// former has the verbs and flags that this build no longer has and that a page once showed, each with what to do
// now. A key is how a command line begins, and behind it the flag, if it is one.
var former = map[string]string{
	"bench":                  "bench is now pellucid-lab scrub and pellucid-lab gateway, in lab/ of the source",
	"ccr bench":              "ccr bench is now pellucid-lab ccr, in lab/ of the source",
	"ccr calibrate":          "ccr calibrate is now pellucid-lab calibrate, in lab/ of the source",
	"ccr --score-url":        "--score-url is gone: name the model to ask again, with --url",
	"guard --workers":        "--workers is gone: leave it out, and each guard runs its own audits, four at a time",
	"ledger drift":           "ledger drift is gone: ledger show --kind classified lists what classifiers flagged, and the metric pellucid_classifier_verdicts_total counts it",
	"ledger mirror":          "ledger mirror is gone: ledger export DIRECTORY writes the same files, and docs/evidence.md shows how a scheduler copies them",
	"ground import --format": "--format is gone: docs/examples/factcheck makes attestations of published fact checks",
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
