// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// What follows is for whoever has single answers of a server and not its whole
// surface: the boundary, which compares every listing with what was approved.

// EntryItem is the item of an entry of the list that method asks for. ok is false for
// what no such list can hold.
func EntryItem(method string, entry strictjson.Value) (it Item, ok bool) {
	l := listOf(method)
	if l == nil || entry.Kind() != '{' {
		return Item{}, false
	}
	name := entry.Get(l.key)
	if name.Kind() != '"' || name.Text() == "" {
		return Item{}, false
	}
	return newItem(Key{l.kind, strings.Clone(name.Text())}, Canonical(entry)), true
}

// HelloItem is the item of an answer to initialize or server/discover. A server that
// speaks both eras has one item: its own name stands in serverInfo, and capabilities that
// hold no words are left out. spec: surface/2.2
func HelloItem(result strictjson.Value) Item {
	key := Key{Kind: Server}
	meta, capabilities := result.Get("_meta"), result.Get("capabilities")
	info := meta.Get(mcpmsg.KeyServerInfo)
	hoisted := info.Exists() && !result.Get("serverInfo").Exists()
	if !hoisted && capabilities.Kind() != '{' {
		return newItem(key, appendCanonical(nil, result, isBookkeeping))
	}
	isInfo := func(name string, _ strictjson.Value) bool { return hoisted && name == mcpmsg.KeyServerInfo }
	b := []byte{'{'}
	add := func(name string, value []byte) {
		b = append(append(append(strictjson.AppendQuote(b, name), ':'), value...), ',')
	}
	for name, v := range result.Members() {
		switch text := name.Text(); {
		case isBookkeeping(text, v):
		case text == "capabilities" && v.Kind() == '{':
			add(text, appendCanonical(nil, v, IsSwitch))
		case text == "_meta" && hoisted:
			if rest := appendCanonical(nil, v, isInfo); string(rest) != "{}" {
				add(text, rest)
			}
		default:
			add(text, v.Raw())
		}
	}
	if hoisted {
		add("serverInfo", info.Raw())
	}
	var doc strictjson.Doc
	if doc.Reset(closed(b, '}'), itemLimits) != nil {
		return newItem(key, appendCanonical(nil, result, isBookkeeping))
	}
	return newItem(key, Canonical(doc.Root()))
}

// IsSwitch reports whether a capability of a server is one of the protocol's that holds
// no words.
func IsSwitch(name string, v strictjson.Value) bool {
	switch name {
	case "tools", "prompts", "resources", "logging", "completions":
	default:
		return false
	}
	if v.Kind() != '{' {
		return false
	}
	for flag, value := range v.Members() {
		if _, isBool := value.Bool(); !isBool || flag.Text() != "listChanged" && flag.Text() != "subscribe" {
			return false
		}
	}
	return true
}

// BesideItem is the item of what one page of a list says beside its entries; ok is
// false if that is nothing. hello is the answer with which the server introduced itself,
// or its item: that a page repeats the server's name says nothing.
func BesideItem(method string, page, hello strictjson.Value) (it Item, ok bool) {
	l := listOf(method)
	if l == nil {
		return Item{}, false
	}
	rest := beside(l, page, hello)
	if rest == "" {
		return Item{}, false
	}
	return newItem(Key{List, l.method}, []byte("["+rest+"]")), true
}

// beside is the canonical form of what a page says beside its entries; "" if nothing.
func beside(l *list, page, hello strictjson.Value) string {
	rest := appendCanonical(nil, page, func(name string, v strictjson.Value) bool {
		return name == l.member && v.Kind() == '[' || isBookkeeping(name, v) || RepeatsName(name, v, hello)
	})
	if string(rest) == "{}" {
		return ""
	}
	return string(rest)
}

// RepeatsName reports whether a member of a page is the server's name, as hello has it,
// and nothing else. The modern era puts it into every answer.
func RepeatsName(name string, v, hello strictjson.Value) bool {
	info := hello.Get("serverInfo")
	if !info.Exists() {
		info = hello.Get("_meta").Get(mcpmsg.KeyServerInfo)
	}
	own := v.Get(mcpmsg.KeyServerInfo)
	return name == "_meta" && v.Len() == 1 && own.Exists() && info.Exists() && bytes.Equal(Canonical(own), Canonical(info))
}

// Entries is the member of a result that holds the entries of the list that method
// asks for; "" if it asks for none.
func Entries(method string) string {
	if l := listOf(method); l != nil {
		return l.member
	}
	return ""
}

// Canonical is the canonical form of v. spec: surface/2.3
func Canonical(v strictjson.Value) []byte { return appendCanonical(nil, v, nil) }

// IsBookkeeping reports whether a member of a result is no part of a surface.
// spec: surface/2.2
func IsBookkeeping(name string, v strictjson.Value) bool { return isBookkeeping(name, v) }

// Inspect is pass 1 over one item.
func (it Item) Inspect(r Rules) *Inspection {
	in := newInspector(r, len(it.JSON))
	in.key = it.Key
	if it.isIn(r.DangerouslyAllow) {
		in.allowed = []Key{it.Key}
	}
	var doc strictjson.Doc
	if doc.Reset(bytes.Clone(it.JSON), itemLimits) == nil {
		in.value(doc.Root(), nil)
	}
	return in.out
}
