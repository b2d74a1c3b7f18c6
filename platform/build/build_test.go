// SPDX-License-Identifier: Apache-2.0

package build

import (
	"reflect"
	"runtime/debug"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

func TestRead(t *testing.T) {
	settings := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "4c0ffee"}, {Key: "vcs.time", Value: "2026-11-23T01:02:03Z"}, {Key: "vcs.modified", Value: modified}}
	}
	yes, no := true, false
	for name, tt := range map[string]struct {
		info                      *debug.BuildInfo
		version, commit, commitAt string
		modified                  *bool
	}{
		"no build information": {nil, "(devel)", "", "", nil},
		"outside a checkout":   {&debug.BuildInfo{}, "(devel)", "", "", nil},
		"go install":           {&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3", Sum: "h1:a="}}, "v1.2.3", "", "", nil},
		"a tag":                {&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: settings("false")}, "v1.2.3", "4c0ffee", "2026-11-23T01:02:03Z", &no},
		"a changed checkout":   {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: settings("true")}, "(devel)", "4c0ffee", "2026-11-23T01:02:03Z", &yes},
	} {
		v := read(tt.info)
		if v.Version != tt.version || v.Commit != tt.commit || v.CommitTime != tt.commitAt || !reflect.DeepEqual(v.Modified, tt.modified) || v.Sanitation != scrub.Version {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestModules(t *testing.T) {
	if got := modules(nil); got == nil || len(got) != 0 {
		t.Errorf("modules(nil) = %v, want an empty list, which JSON shows as []", got)
	}
	got := modules(&debug.BuildInfo{Main: debug.Module{Path: "m", Version: "v1.0.0"}, Deps: []*debug.Module{
		{Path: "a", Version: "v1.1.0", Sum: "h1:a="},
		{Path: "b", Version: "v1.2.0", Replace: &debug.Module{Path: "fork", Version: "v1.2.1", Sum: "h1:f="}},
	}})
	want := []Module{{"m", "v1.0.0", ""}, {"a", "v1.1.0", "h1:a="}, {"fork", "v1.2.1", "h1:f="}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
