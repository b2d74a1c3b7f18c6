// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzTask: a declared task is text of bounded length, and encoded text comes back as it was.
func FuzzTask(f *testing.F) {
	for _, s := range []string{"Pay bob.", "UTF-8''%E2%82%AC%20100", "utf-8''%zz", "UTF-8'en'x", "100 %", "\u202e", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if task, ok := parseTask(s); ok && (task == "" || len(task) > maxTask || !utf8.ValidString(task)) {
			t.Errorf("%q is read as %q", s, task)
		}
		plain := strings.TrimSpace(s)
		if plain == "" || len(plain) > maxTask || !utf8.ValidString(plain) || strings.ContainsRune(plain, 0) {
			return
		}
		if task, ok := parseTask("UTF-8''" + url.PathEscape(plain)); !ok || task != plain {
			t.Errorf("%q comes back as %q", plain, task)
		}
	})
}
