// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// former has the verbs and flags that this build no longer has and that a page once showed, each with what to do
// now. A key is how a command line begins, and behind it the flag, if it is one.
var former = map[string]string{
	"bench":                "bench is now pellucid-lab scrub and pellucid-lab gateway, in lab/ of the source",
	"ccr bench":            "ccr bench is now pellucid-lab ccr, in lab/ of the source",
	"ccr calibrate":        "ccr calibrate is now pellucid-lab calibrate, in lab/ of the source",
	"ccr analyze --html":   "--html is gone: --json has the whole report",
	"ccr analyze --tape":   "--tape is gone: --record writes the evidence, and ccr replay computes the verdict from it without a model",
	"check --sarif":        "--sarif is gone: --json has every finding with its server, item and field, and the exit code gives the result",
	"ccr rerun":            "ccr rerun is gone: ccr replay computes the verdict of a record again, without a model",
	"ccr --score-url":      "--score-url is gone: name the model to ask again, with --url",
	"guard --workers":      "--workers is gone: leave it out, and each guard runs its own audits, four at a time",
	"ledger drift":         "ledger drift is gone: ledger show --kind classified lists what classifiers flagged, and the metric pellucid_classifier_verdicts_total counts it",
	"ledger mirror":        "ledger mirror is gone: ledger export DIRECTORY writes the same files, and docs/evidence.md shows how a scheduler copies them",
	"ground":               "grounding is a program of its own: pellucid-ground has serve, import, query, retract, reverse and export",
	"attest":               "attest is now pellucid-ground attest",
	"conform":              "conform is now pellucid-ground conform",
	"keys new attestation": "keys new attestation is now pellucid-ground attest new",
	"up --ground":          "--ground is gone: name pellucid-ground in the configuration, as servers: {grounding: {command: [pellucid-ground, serve, --stdio], profile: veritas-0.1}}",
	"up --db":              "--db is gone: the store of attestations is --db of pellucid-ground, and that of the gateway store in the configuration",
}

// movedVerbs are those that are now a flag of another verb.
var movedVerbs = map[string]string{
	"pins show":               "pins list --items",
	"pins forget":             "forget --pin SERVER",
	"href":                    "scrub --uri URI",
	"quarantine exceptions":   "quarantine list --of exceptions",
	"quarantine blocks":       "quarantine list --of blocks",
	"quarantine approvals":    "quarantine list --of approvals",
	"quarantine confirm":      "quarantine except --confirm ID",
	"quarantine lift":         "quarantine revoke",
	"console serve":           "console",
	"console link":            "console --link",
	"console sessions list":   "console --sessions",
	"console sessions revoke": "console --revoke NAME",
	"console sessions":        "console --sessions",
	"webhooks list":           "webhooks",
	"webhooks test":           "webhooks --test NAME",
	"trust show":              "trust",
	"trust replay":            "trust --replay",
	"keys list":               "doctor",
	"keys retire":             "keys rotate --retire ID",
	"ledger index":            "ledger show --index",
	"ledger prove":            "explain --proof ID",
	"ledger case":             "explain --case FILE ID",
	"ledger rotate":           "keys rotate --log",
	"ledger keygen":           "keys new ledger NAME",
	"ledger witness":          "ledger checkpoint --policy FILE",
	"ledger resume":           "ledger restore --resume",
	"ccr verify":              "ledger verify --record FILE",
}

// formerIn returns what to do in place of the former verb or flag that a command line has; "" where it has none.
func formerIn(args []string) string {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	line := strings.Join(args, " ") + " "
	for n := min(3, len(args)); n > 0; n-- {
		was := strings.Join(args[:n], " ")
		if now, moved := movedVerbs[was]; moved {
			return was + " is now pellucid " + now
		}
	}
	for words, instead := range former {
		verb, flag, isFlag := strings.Cut(words, " --")
		if strings.HasPrefix(line, verb+" ") && (!isFlag || slices.ContainsFunc(args, func(arg string) bool { return arg == "--"+flag || strings.HasPrefix(arg, "--"+flag+"=") })) {
			return instead
		}
	}
	return ""
}
