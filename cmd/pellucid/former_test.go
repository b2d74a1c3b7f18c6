// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestMovedVerbs: what took the place of a verb that is gone is a verb with its flags, and the table of what left
// names nothing that there is.
func TestMovedVerbs(t *testing.T) {
	var c cli
	k, err := newParser(&c, &env{})
	if err != nil {
		t.Fatal(err)
	}
	for was, now := range movedVerbs {
		if got, want := formerIn(append(strings.Fields(was), "x")), was+" is now pellucid "+now; got != want {
			t.Errorf("%s: %q, want %q", was, got, want)
		}
		node := k.Model.Node
		for word := range strings.FieldsSeq(now) {
			if flag, is := strings.CutPrefix(word, "--"); is && !hasFlag(node, flag) {
				t.Errorf("%s: %s has no flag %s", was, node.FullPath(), word)
			}
			if child := childOf(node, word); child != nil {
				node = child
			}
		}
		if node == k.Model.Node {
			t.Errorf("%s: %s is no verb", was, now)
		}
	}
	for words := range former {
		node := k.Model.Node
		for word := range strings.FieldsSeq(words) {
			child := childOf(node, word)
			flag, is := strings.CutPrefix(word, "--")
			if is && hasFlag(node, flag) {
				t.Errorf("%s: there is such a flag", words)
			}
			if child == nil {
				node = nil
				break
			}
			node = child
		}
		if node != nil {
			t.Errorf("%s: there is such a verb", words)
		}
	}
	if says := formerIn([]string{"wrap", "--", "ledger", "drift"}); says != "" {
		t.Errorf("a server's own words are read as a verb: %s", says)
	}
}

func childOf(n *kong.Node, name string) *kong.Node {
	for _, child := range n.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

func hasFlag(n *kong.Node, name string) bool {
	for _, f := range n.Flags {
		if f.Name == name {
			return true
		}
	}
	return false
}
