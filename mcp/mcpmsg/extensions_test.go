// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import (
	"maps"
	"slices"
	"testing"
)

// TestExtensionsCoverSchemas: each capability that a published schema gives to servers
// has a row, and each method of a row has one in the table of messages.
func TestExtensionsCoverSchemas(t *testing.T) {
	for _, rev := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		defs := loadDefs(t, rev)
		props := defs["ServerCapabilities"].(object)["properties"].(object)
		for _, name := range slices.Sorted(maps.Keys(props)) {
			path := []string{name}
			if name == "experimental" || name == "extensions" {
				path = append(path, "a.b/c")
			}
			row := Alone.row(path)
			if other := &Extensions[len(Extensions)-1]; row == other != (name == "extensions") {
				t.Errorf("%s: capability %s has the row %q", rev, name, row.Name)
			}
		}
	}
	if row := Alone.row([]string{"extensions", ExtensionApps}); !row.pinned || row.Union != Inspected {
		t.Errorf("Apps: %+v", row)
	}
	if row := Alone.row([]string{"evil"}); row.Union != Withheld || row.Name != "any other" {
		t.Errorf("an unknown capability: %+v", row)
	}
}

func TestIsApp(t *testing.T) {
	for uri, want := range map[string]bool{"ui://a": true, "UI:a": true, "file:///ui:": false, "ui": false, "": false} {
		if IsApp(uri) != want {
			t.Errorf("%s", uri)
		}
	}
}
