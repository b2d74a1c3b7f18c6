// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// helpArguments reads "help", "help all" and "help VERB" as flags. The help of the program alone shows the
// first verbs; "help all" shows every one.
func helpArguments(k *kong.Kong, args []string) []string {
	switch {
	case args[0] == "help" && len(args) > 1 && args[1] == "all":
		return []string{"--help"}
	case args[0] == "help" && len(args) > 1:
		return append(args[1:len(args):len(args)], "--help")
	case args[0] == "help", args[0] == "--help", args[0] == "-h":
		for _, verb := range k.Model.Children {
			verb.Hidden = verb.Hidden || verb.Group == nil || verb.Group.Key != verbGroups[0].Key
		}
		k.Model.Detail = "pellucid help all shows every command, by who uses it."
		return []string{"--help"}
	}
	return args
}

// formerVerbs are those that are now a flag of another verb. A page once showed each of them.
var formerVerbs = map[string]string{
	"pins show":               "pins list --items",
	"pins forget":             "forget --pin SERVER",
	"href":                    "scrub --uri URI",
	"attest keygen":           "keys new attestation",
	"attest hash":             "attest check --hash",
	"ground reverse":          "ground retract --reverse",
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
	"ccr rerun":               "ccr replay RECORD CONTEXT",
}

// formerVerb says what took the place of the verb that args begin with; "" for one that there is.
func formerVerb(args []string) string {
	for n := min(3, len(args)); n > 0; n-- {
		was := strings.Join(args[:n], " ")
		if now := formerVerbs[was]; now != "" {
			return "pellucid " + was + " is now pellucid " + now
		}
	}
	return ""
}
