// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// former has the verbs and flags that this build no longer has and that a page once showed, each with what to do
// now. A key is how a command line begins, and behind it the flag, if it is one.
var former = map[string]string{
	"attest hash":             "attest hash is now pellucid attest check --hash",
	"attest keygen":           "attest keygen is now pellucid keys new attestation",
	"ccr rerun":               "ccr rerun is now pellucid ccr replay RECORD CONTEXT",
	"ccr verify":              "ccr verify is now pellucid ledger verify --record FILE",
	"console link":            "console link is now pellucid console --link",
	"console serve":           "console serve is now pellucid console",
	"console sessions":        "console sessions is now pellucid console --sessions",
	"console sessions list":   "console sessions list is now pellucid console --sessions",
	"console sessions revoke": "console sessions revoke is now pellucid console --revoke NAME",
	"ground reverse":          "ground reverse is now pellucid ground retract --reverse",
	"href":                    "href is now pellucid scrub --uri URI",
	"keys list":               "keys list is now pellucid doctor",
	"keys retire":             "keys retire is now pellucid keys rotate --retire ID",
	"ledger case":             "ledger case is now pellucid explain --case FILE ID",
	"ledger index":            "ledger index is now pellucid ledger show --index",
	"ledger keygen":           "ledger keygen is now pellucid keys new ledger NAME",
	"ledger prove":            "ledger prove is now pellucid explain --proof ID",
	"ledger resume":           "ledger resume is now pellucid ledger restore --resume",
	"ledger rotate":           "ledger rotate is now pellucid keys rotate --log",
	"ledger witness":          "ledger witness is now pellucid ledger checkpoint --policy FILE",
	"pins forget":             "pins forget is now pellucid forget --pin SERVER",
	"pins show":               "pins show is now pellucid pins list --items",
	"quarantine approvals":    "quarantine approvals is now pellucid quarantine list --of approvals",
	"quarantine blocks":       "quarantine blocks is now pellucid quarantine list --of blocks",
	"quarantine confirm":      "quarantine confirm is now pellucid quarantine except --confirm ID",
	"quarantine exceptions":   "quarantine exceptions is now pellucid quarantine list --of exceptions",
	"quarantine lift":         "quarantine lift is now pellucid quarantine revoke",
	"trust replay":            "trust replay is now pellucid trust --replay",
	"trust show":              "trust show is now pellucid trust",
	"webhooks list":           "webhooks list is now pellucid webhooks",
	"webhooks test":           "webhooks test is now pellucid webhooks --test NAME",
}

// formerIn returns what to do in place of the former verb or flag in a command line.
func formerIn(args []string) (instead string, found bool) {
	longest := ""
	for words := range former {
		verb, flag, isFlag := strings.Cut(words, " --")
		begins := strings.HasPrefix(strings.Join(args, " ")+" ", verb+" ")
		if begins && len(words) > len(longest) && (!isFlag || slices.ContainsFunc(args, func(arg string) bool { return arg == "--"+flag || strings.HasPrefix(arg, "--"+flag+"=") })) {
			longest = words
		}
	}
	return former[longest], longest != ""
}
