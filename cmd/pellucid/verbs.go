// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/alecthomas/kong"

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
