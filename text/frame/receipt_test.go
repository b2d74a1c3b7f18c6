// SPDX-License-Identifier: Apache-2.0

package frame

import "testing"

func TestIsReceipt(t *testing.T) {
	for key, want := range map[string]bool{
		"dev.pellucid/provenance":                 true,
		"dev.pellucid/":                           true,
		"DEV.Pellucid/x":                          true,
		"dev.pellucid.x/provenance":               true,
		"dev.pellucid-x/provenance":               true,
		"dev.pe11ucid/x":                          true,
		"dev-.pel_lucid/x":                        true,
		" dev.pellucid/x":                         true,
		"/dev.pellucid/x":                         true,
		"\u0501ev.pellucid/x":                     true, // Cyrillic komi de
		"d\u0435v.p\u0435llu\u0441id/x":           true, // Cyrillic ie, es
		"dev.pellu\u03f2id/x":                     true, // lunate sigma
		"dev.pe\uffe8lucid/x":                     true,
		"\uff44\uff45\uff56\uff0epellucid\uff0fx": true, // full width
		"dev\u2024pellucid/x":                     true,
		"dev.pellucid\u2044x":                     true,
		"d\u00e9v.pellucid/x":                     true,
		"dev.pellu\u200bcid/x":                    true,
		"\U0001d41dev.pellucid/x":                 true,
		"":                                        false,
		"dev.pellucid":                            false, // a word, not the key of a member of _meta
		"dev/pellucid":                            false,
		"dev.pell/x":                              false,
		"org.example/x":                           false,
		"com.example.dev.pellucid/x":              false,
		"io.modelcontextprotocol/related-task":    false,
		"device/pellucid":                         false,
		"description":                             false,
		"\u540d\u524d":                            false,
		"\u0434\u0435\u043d\u044c/\u0445":         false,
	} {
		if got := IsReceipt(key); got != want {
			t.Errorf("%+q: %v", key, got)
		}
	}
	for _, key := range []string{"description", "date", "\u540d\u524d", "text"} {
		if n := testing.AllocsPerRun(100, func() { IsReceipt(key) }); n != 0 {
			t.Errorf("%+q: %v allocations", key, n)
		}
	}
}

// FuzzIsReceipt: any key, and no key of ours is missed.
func FuzzIsReceipt(f *testing.F) {
	f.Add("x")
	f.Add("dev.pellu\u03f2id/x")
	f.Fuzz(func(t *testing.T, key string) {
		IsReceipt(key)
		if !IsReceipt(MetaPrefix + key) {
			t.Fatalf("%+q is missed", MetaPrefix+key)
		}
	})
}
