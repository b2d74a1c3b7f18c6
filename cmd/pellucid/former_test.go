// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestFormer: a verb that is gone is not read as another one, and what took its place is one that there is.
func TestFormer(t *testing.T) {
	for words, says := range former {
		if strings.Contains(words, " --") {
			continue
		}
		args := strings.Fields(words)
		var c cli
		k, err := newParser(&c, quiet())
		if err != nil {
			t.Fatal(err)
		}
		k.Exit = func(int) {}
		ctx, err := parse(k, append(args, "x"))
		if err == nil {
			t.Errorf("%s: it is read", words)
			continue
		}
		if got := usage(ctx, args, err); !errors.Is(got, err) && got.Error() != says && !strings.HasSuffix(got.Error(), says) {
			t.Errorf("%s: %v", words, got)
		}
		_, now, is := strings.Cut(says, "is now pellucid ")
		if !is {
			continue
		}
		var node kong.Visitable = k.Model.Node
		for word := range strings.FieldsSeq(now) {
			for _, child := range node.(*kong.Node).Children {
				if child.Name == word {
					node = child
					break
				}
			}
			if flag, isFlag := strings.CutPrefix(word, "--"); isFlag && !hasFlag(node.(*kong.Node), flag) {
				t.Errorf("%s: %s has no flag %s", words, node.(*kong.Node).FullPath(), word)
			}
		}
		if node == kong.Visitable(k.Model.Node) {
			t.Errorf("%s: %s is no verb", words, now)
		}
	}
}

func hasFlag(n *kong.Node, name string) bool {
	for _, f := range n.Flags {
		if f.Name == name {
			return true
		}
	}
	return false
}
