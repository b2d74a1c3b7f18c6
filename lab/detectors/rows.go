// SPDX-License-Identifier: Apache-2.0

package detectors

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pellucid-mcp/pellucid/lab/training"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// A row is a text that detectors are asked about.
type row struct {
	id, family, language string
	attack               bool
	sort                 sort
	text                 string
	left                 float64 // score of the fast model that has not seen the row's group
}

// A sort of texts is measured apart.
type sort int

const (
	told        sort = iota // the text shows whether it is an attack
	bare                    // a request that could be the user's: the text alone cannot show it
	description             // what a server says of its tools
)

// sortOf tells families whose attacks are bare requests, and descriptions, from the others.
func sortOf(family string) sort {
	for _, s := range []struct {
		prefix string
		sort   sort
	}{
		{"ipi-bipia-", bare}, {"ipi-agentdojo-direct", bare}, {"ipi-agentdyn-direct", bare},
		{"tool-poison-", description}, {"tool-description-", description}, {"server-instructions-", description},
	} {
		if strings.HasPrefix(family, s.prefix) {
			return s.sort
		}
	}
	return told
}

// load reads the texts in an order that has nothing to do with what they are: a detector
// that is stopped before the end has judged a random sample.
func load(left []training.Judged, dir string) ([]row, error) {
	notes := map[string]string{}
	paths, err := datatest.Files(dir)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		err := datatest.Read(path, func(r datatest.Row) error { notes[r.ID] = r.Notes; return nil })
		if err != nil {
			return nil, err
		}
	}
	var rows []row
	for _, l := range left {
		rows = append(rows, row{l.ID, l.Family, languageOf(l.Family, notes[l.ID], l.Text), l.Attack, sortOf(l.Family), l.Text, l.Score})
	}
	slices.SortFunc(rows, func(a, b row) int {
		x, y := sha256.Sum256([]byte(a.id)), sha256.Sum256([]byte(b.id))
		return cmp.Or(bytes.Compare(x[:], y[:]), strings.Compare(a.id, b.id))
	})
	return thin(rows), nil
}

// most attacks of a family are measured, so that a collection of hundreds with one template
// does not make the figure.
const most = 45

// thin leaves out the attacks of a family that come after the first ones.
func thin(rows []row) []row {
	seen := map[string]int{}
	return slices.DeleteFunc(rows, func(r row) bool {
		if !r.attack {
			return false
		}
		seen[r.family]++
		return seen[r.family] > most
	})
}

var noted = regexp.MustCompile(`\blang=([A-Z][a-z]+)`)

// languages of collections that say it in the name of a family.
var languages = map[string]string{
	"tldr-hi": "Hindi", "tldr-ja": "Japanese", "tldr-tr": "Turkish", "tldr-uk": "Ukrainian",
	"udhr-amh": "Amharic", "udhr-arb": "Arabic", "udhr-bel": "Belarusian", "udhr-ben": "Bengali", "udhr-ccp": "Chakma",
	"udhr-ces": "Czech", "udhr-ckb": "Kurdish", "udhr-cmn-hant": "Chinese", "udhr-dzo": "Dzongkha", "udhr-ell-monotonic": "Greek",
	"udhr-fra": "French", "udhr-gle": "Irish", "udhr-hin": "Hindi", "udhr-isl": "Icelandic", "udhr-jpn": "Japanese", "udhr-lao": "Lao",
	"udhr-mal-chillus": "Malayalam", "udhr-nep": "Nepali", "udhr-pbu": "Pashto", "udhr-pes-1": "Persian", "udhr-por-br": "Portuguese",
	"udhr-rus": "Russian", "udhr-tha": "Thai", "udhr-ukr": "Ukrainian", "udhr-urd": "Urdu", "udhr-urd-2": "Urdu",
}

// english is the language of a text that neither its collection nor its script says is another's.
const english = "English"

// languageOf is the language that the collection names, or that of the script, or English.
func languageOf(family, notes, text string) string {
	if m := noted.FindStringSubmatch(notes); m != nil {
		return m[1]
	}
	if l := languages[family]; l != "" {
		return l
	}
	if rest, ok := strings.CutPrefix(family, "ud-"); ok {
		name, _, _ := strings.Cut(rest, "-")
		return strings.ToUpper(name[:1]) + name[1:]
	}
	letters, other := 0, 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
			if !unicode.Is(unicode.Latin, r) {
				other++
			}
		}
	}
	if 2*other > letters {
		return "other script"
	}
	return english
}
