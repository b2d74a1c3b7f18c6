// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const example = `# German
msgid ""
msgstr "Content-Type: text/plain\n"

#: views.py:3
#, python-format
msgid "Delete <b>%(name)s</b> and go back to the list?"
msgstr ""
"Soll <b>%(name)s</b> gel\303\266scht "
"werden?"

#, fuzzy
msgid "Never checked by anybody at all"
msgstr "Nie von jemandem durchgesehen"

msgid "One file was sent to the server"
msgid_plural "%d files were sent"
msgstr[0] "Eine Datei ist gesendet worden"
msgstr[1] "%d Dateien sind gesendet worden"
#~ msgid "old"
#~ msgstr "alt"
msgid "At the end"
msgstr "Am Ende"`

func TestReadPO(t *testing.T) {
	var got []string
	if err := readPO(strings.NewReader(example), func(id, s string) { got = append(got, plain(id)+" | "+plain(s)) }); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Delete 7 and go back to the list? | Soll 7 gel\u00f6scht werden?",
		"One file was sent to the server | Eine Datei ist gesendet worden",
		"At the end | Am Ende",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

func FuzzReadPO(f *testing.F) {
	f.Add(example)
	f.Add("msgid \"a\"\nmsgstr \"b\"\nmsgstr \"c\"\n\"d\"\n\"")
	f.Fuzz(func(t *testing.T, s string) {
		total := 0
		_ = readPO(strings.NewReader(s), func(id, translation string) {
			if id == "" || translation == "" {
				t.Fatal("an empty message")
			}
			total += len(id) + len(translation)
			long(plain(translation))
		})
		if total > 4*len(s)+1 {
			t.Fatalf("%d bytes out of %d", total, len(s))
		}
	})
}

func TestTranslations(t *testing.T) {
	dir := filepath.Join("..", "..", Folder)
	rows, err := Translations(dir, Seed)
	if errors.Is(err, ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	honest, attacks := map[string]int{}, map[string]int{}
	for _, r := range rows {
		if r.Attack {
			attacks[r.Language]++
		} else {
			honest[r.Language]++
		}
	}
	if len(honest) < 40 || len(attacks) < 15 {
		t.Errorf("honest texts in %d languages, attacks in %d", len(honest), len(attacks))
	}
}

func TestArchive(t *testing.T) {
	if _, err := Translations(t.TempDir(), Seed); !errors.Is(err, ErrAbsent) {
		t.Errorf("an empty folder: %v", err)
	}
	dir := t.TempDir()
	write := func(name string, of func(*zip.Writer) error) {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		if err := errors.Join(of(z), z.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	po := func(z *zip.Writer) error {
		w, err := z.Create("x/locale/de/LC_MESSAGES/django.po")
		if err == nil {
			_, err = w.Write([]byte(example))
		}
		return err
	}
	write("django-1.whl", po)
	got, err := messages(dir)
	if err != nil || got["de"]["Eine Datei ist gesendet worden"] != "BSD-3-Clause" || got["en"]["One file was sent to the server"] == "" {
		t.Errorf("%v %v", got, err)
	}
	write("other-1.whl", po)
	if _, err := messages(dir); err == nil {
		t.Error("an unknown package is taken")
	}
	if err := os.Rename(filepath.Join(dir, "other-1.whl"), filepath.Join(dir, "wagtail-1.whl")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sphinx-1.whl"), []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := messages(dir); err == nil {
		t.Error("a damaged package is taken")
	}
}
