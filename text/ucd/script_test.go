// SPDX-License-Identifier: Apache-2.0

package ucd

import "testing"

func TestScript(t *testing.T) {
	for r, want := range map[rune]Script{
		'a': ScriptLatin, '1': ScriptCommon, 0x301: ScriptInherited, 0x430: ScriptCyrillic, 0x4E00: ScriptHan,
		0x10300: ScriptOldItalic, 0x1F600: ScriptCommon, 0x378: ScriptUnknown, 0xE000: ScriptUnknown,
		0x11F00: ScriptKawi, 0x11380: ScriptTuluTigalari, 0x1E4D0: ScriptNagMundari, 0x110000: ScriptUnknown, -1: ScriptUnknown,
	} {
		if got := ScriptOf(r); got != want {
			t.Errorf("ScriptOf(%U) = %s, not %s", r, got, want)
		}
	}
	if ScriptOldItalic.String() != "Old_Italic" || Script(250).String() != "invalid" {
		t.Error("names of scripts")
	}
}

func TestExtensions(t *testing.T) {
	for r, want := range map[rune]ScriptSet{
		'a':      SetOf(ScriptLatin),
		'1':      SetOf(ScriptCommon),
		0x30FC:   SetOf(ScriptHiragana, ScriptKatakana),
		0x3001:   SetOf(ScriptBopomofo, ScriptHan, ScriptHangul, ScriptHiragana, ScriptKatakana, ScriptMongolian, ScriptYi),
		0x342:    SetOf(ScriptGreek),
		0x301:    SetOf(ScriptCherokee, ScriptCyrillic, ScriptGreek, ScriptLatin, ScriptOsage, ScriptSunuwar, ScriptTaiLe, ScriptTodhri),
		0x1CF7:   SetOf(ScriptBengali),
		0x110000: SetOf(ScriptUnknown),
	} {
		if got := Extensions(r); got != want {
			t.Errorf("Extensions(%U) = %x, not %x", r, got, want)
		}
	}
	cjk, kana := Extensions(0x3001), Extensions(0x30FC)
	if cjk.Len() != 7 || !cjk.Has(ScriptYi) || cjk.Has(ScriptLatin) || cjk.Has(Script(250)) {
		t.Error("Has, Len")
	}
	if cjk.And(kana) != kana || cjk.Or(kana) != cjk || SetOf(ScriptLatin).And(kana) != (ScriptSet{}) || SetOf(Script(250)).Len() != 0 {
		t.Error("And, Or, SetOf")
	}
}

func TestSkeleton(t *testing.T) {
	for _, pair := range [][2]string{
		{"paypai", "\u0440\u0430\u0443\u0440\u0430\u04cf"}, // Cyrillic
		{"modern", "modem"},
		{"1", "l"}, {"I", "|"}, {"O", "0"}, // ASCII too
		{"\u00e9", "e\u0301"},
		{"<|im_start|>", "\u2039|im_start|\u276f"},
		{"\U0001d16d", "."},
	} {
		a, b := string(AppendSkeleton(nil, pair[0])), string(AppendSkeleton([]byte("x"), pair[1]))
		if "x"+a != b {
			t.Errorf("skeletons of %+q and %+q: %+q, %+q", pair[0], pair[1], a, b[1:])
		}
	}
	for r, want := range map[rune]string{'m': "rn", 'a': "", 0x430: "a", 0x2A74: "::=", 0x110000: "", -1: ""} {
		if got := Prototype(r); got != want {
			t.Errorf("Prototype(%U) = %+q, not %+q", r, got, want)
		}
	}
}

// TestPinnedScripts: what a hash may depend on does not know what came later.
func TestPinnedScripts(t *testing.T) {
	cjk := SetOf(ScriptBopomofo, ScriptHan, ScriptHangul, ScriptHiragana, ScriptKatakana, ScriptYi)
	if PinnedScript(0x11380) != ScriptUnknown || PinnedExtensions(0x3001) != cjk || PinnedExtensions(0x301) != SetOf(ScriptInherited) ||
		PinnedScript('a') != ScriptLatin || PinnedExtensions(0x11380) != SetOf(ScriptUnknown) || PinnedScript(0x31350) != ScriptHan ||
		PinnedScript(-1) != ScriptUnknown || PinnedExtensions(0x110000) != SetOf(ScriptUnknown) {
		t.Error("PinnedScript or PinnedExtensions")
	}
}
