// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

func TestAdmission(t *testing.T) {
	digestA, digestB := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	r := parse(t, "version: 1\nservers: {a: {command: [x]}}")
	if want := (Admission{Wide: true}); r.admission != want || r.Server("a").Admission != want {
		t.Errorf("nothing is strict: %+v", r.Server("a").Admission)
	}
	r = parse(t, `version: 1
admission: {first: hold, wide: true, shadows: hold, descriptions: hold}
servers:
  a: {command: [x]}
  b: {command: [x], admission: {first: approve, wide: false, descriptions: "off", dangerously_allow: ["`+digestB+`", "`+digestA+`"]}}
  c: {command: [x], admission: {pins: audit}}
  d: {command: [x], admission: {pins: "off"}}
`)
	for name, want := range map[string]Admission{
		"a": {HoldFirst: true, Wide: true, HoldShadows: true, Descriptions: HoldDescriptions},
		"b": {HoldShadows: true, Descriptions: IgnoreDescriptions, DangerouslyAllow: digestA + " " + digestB},
		"c": {Pins: policy.Audit, Wide: true},
		"d": {Pins: policy.Off, Wide: true},
	} {
		if got := r.Server(name).Admission; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	again := parse(t, string(r.Effective()))
	if !Equal(r, again) {
		t.Errorf("dumped, it means something else:\n%s", r.Effective())
	}
	was := parse(t, "version: 1\nservers: {a: {command: [x]}}")
	is := parse(t, "version: 1\nadmission: {wide: false}\nservers: {a: {command: [x]}}")
	if d := Diff(was, is); len(d.Ruled) != 1 || len(d.Sections) != 1 || d.Ended != nil {
		t.Errorf("%+v", d)
	}
}

func TestAdmissionProblems(t *testing.T) {
	for src, want := range map[string]string{
		"version: 1\nadmission: {pins: no}":                                                   `admission.pins: want enforce, audit or off: "no"`,
		"version: 1\nadmission: {dangerously_allow: [\"sha256:00\"]}":                         `admission.dangerously_allow[0]: want the digest of an item`,
		"version: 1\nadmission: {pin: audit}":                                                 "admission.pin: there is no such member",
		"version: 1\nadmission: {first: maybe}":                                               `admission.first: want approve or hold: "maybe"`,
		"version: 1\nadmission: {shadows: block}":                                             `admission.shadows: want warn or hold: "block"`,
		"version: 1\nadmission: {descriptions: no}":                                           `admission.descriptions: want warn, hold or off: "no"`,
		"version: 1\nadmission: {descriptions: hold, pins: audit}":                            "admission.descriptions: holds nothing where pins are not enforced",
		"version: 1\nadmission: {hidden: drop}":                                               `admission.hidden: want withhold or reject: "drop"`,
		"version: 1\ndefaults: {control_tokens: drop}":                                        `defaults.control_tokens: want defuse, remove or keep: "drop"`,
		"version: 1\nadmission: {wide: 1}":                                                    "admission.wide: want true or false",
		"version: 1\nadmission: {timeout: 2h}":                                                "admission.timeout: there is no such member",
		"version: 1\nadmission: {first: hold, pins: audit}":                                   "admission.first: holds nothing where pins are not enforced",
		"version: 1\nadmission: [enforce]":                                                    "admission: want an object",
		"version: 1\nservers: {a: {command: [x], admission: {shadows: hold, pins: \"off\"}}}": "servers.a.admission.shadows: holds nothing",
		"version: 1\nservers: {a: {command: [x], tools: {t: {admission: {pins: \"off\"}}}}}":  "servers.a.tools.t.admission: there is no such member",
	} {
		_, err := Parse([]byte(src), newFixed().options())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", src, err, want)
		}
	}
}
