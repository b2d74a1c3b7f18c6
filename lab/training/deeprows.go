// SPDX-License-Identifier: Apache-2.0

package training

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify/deep"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// DeepOptions say what DeepRows reads and writes.
type DeepOptions struct {
	Root   string   // of the repository, beside which the data are
	Pieces string   // the whole vocabulary: a score, a tab and a piece as a JSON string on each line
	Keep   int      // so many pieces are kept
	More   []string // collections beside those of the test data, in the same form
	Out    string   // folder that gets pieces.tsv and rows.jsonl.gz
}

// A deepRow is a text in pieces, for the trainer of the deep model.
type deepRow struct {
	ID       string  `json:"id"`
	Family   string  `json:"family"`
	Group    string  `json:"group"`
	Language string  `json:"language,omitempty"`
	Attack   bool    `json:"attack"`
	Free     bool    `json:"free"`             // may be trained on
	Own      bool    `json:"own,omitempty"`    // written for this project
	Held     bool    `json:"held,omitempty"`   // of those, on the side that is left out to measure
	Author   string  `json:"author,omitempty"` // of those, who wrote it whole
	Pieces   []int32 `json:"pieces"`
}

// most bounds the pieces of one row that are trained on.
const mostPieces = 4096

// DeepRows chooses the pieces that the deep model keeps and cuts every row into them.
func DeepRows(o DeepOptions, progress io.Writer) error {
	rows, texts, err := deepTexts(o)
	if err != nil {
		return err
	}
	all, err := readPieces(o.Pieces)
	if err != nil {
		return err
	}
	v, err := deep.NewVocabulary(all.pieces, all.scores)
	if err != nil {
		return err
	}
	count := make([]int, len(all.pieces))
	var ids []int32
	for i, t := range texts {
		if ids, _ = v.Cut(ids[:0], t, mostPieces); rows[i].Free {
			for _, p := range ids {
				count[p]++
			}
		}
	}
	kept := all.keep(count, o.Keep)
	if v, err = deep.NewVocabulary(kept.pieces, kept.scores); err != nil {
		return err
	}
	total := 0
	for i, t := range texts {
		rows[i].Pieces, _ = v.Cut(nil, t, mostPieces)
		total += len(rows[i].Pieces)
	}
	fmt.Fprintf(progress, "%d rows, %d pieces of %d kinds\n", len(rows), total, len(kept.pieces))
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return err
	}
	return errors.Join(kept.write(filepath.Join(o.Out, "pieces.tsv")), writeRows(filepath.Join(o.Out, "rows.jsonl.gz"), rows))
}

// deepTexts reads the rows as the boundary shows them to a classifier.
func deepTexts(o DeepOptions) (rows []deepRow, texts []string, err error) {
	dir, err := datatest.CorporaDir(o.Root)
	if err != nil {
		return nil, nil, err
	}
	paths, err := datatest.Files(dir)
	if err != nil {
		return nil, nil, err
	}
	s, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP})
	if err != nil {
		return nil, nil, err
	}
	var r scrub.Result
	for _, path := range paths {
		err := datatest.Read(path, func(row datatest.Row) error {
			if judged(row.Family) {
				s.Scrub(row.Text, &r)
				rows = append(rows, deepRow{ID: row.ID, Family: row.Family, Group: groupOf(row.Family), Attack: row.Attack,
					Free: slices.Contains(permissive, row.Licence), Language: languageOf(row.Notes)})
				texts = append(texts, r.Clean.String())
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	for _, path := range o.More {
		err := readOwn(path, func(row ownRow) {
			s.Scrub(row.Text, &r)
			rows = append(rows, deepRow{ID: row.ID, Family: "own-" + row.Family, Group: row.Group, Attack: row.Kind == "attack",
				Free: row.Split != "test", Own: true, Held: row.Split == "held", Author: row.Author, Language: row.Language})
			texts = append(texts, r.Clean.String())
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return rows, texts, nil
}

// An ownRow is one of 'pellucid-lab injections'.
type ownRow struct{ ID, Kind, Family, Language, Group, Split, Author, Text string }

func readOwn(path string, yield func(ownRow)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for d := json.NewDecoder(z); ; {
		var row ownRow
		switch err := d.Decode(&row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		yield(row)
	}
}

// A pieceList is a vocabulary as the trainer reads and writes it. rank is the place of a
// piece in the vocabulary that it comes from.
type pieceList struct {
	rank   []int
	pieces []string
	scores []float32
}

func readPieces(path string) (*pieceList, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &pieceList{}
	for s := bufio.NewScanner(f); s.Scan(); {
		field := strings.SplitN(s.Text(), "\t", 3)
		if len(field) != 3 {
			return nil, errors.New("training: a line of the vocabulary has not three fields")
		}
		rank, err := strconv.Atoi(field[0])
		score, err2 := strconv.ParseFloat(field[1], 32)
		var piece string
		if err := errors.Join(err, err2, json.Unmarshal([]byte(field[2]), &piece)); err != nil {
			return nil, fmt.Errorf("training: vocabulary: %w", err)
		}
		l.add(rank, piece, float32(score))
	}
	return l, nil
}

func (l *pieceList) add(rank int, piece string, score float32) {
	l.rank, l.pieces, l.scores = append(l.rank, rank), append(l.pieces, piece), append(l.scores, score)
}

// keep is the vocabulary without the pieces that are rare: most of what is kept is what the
// rows use, and the rest are the next by rank, which is by frequency in ordinary text.
func (l *pieceList) keep(count []int, most int) *pieceList {
	used := make([]int, 0, len(count))
	for i := range count {
		if i > int(deep.Unknown) && count[i] > 1 {
			used = append(used, i)
		}
	}
	slices.SortStableFunc(used, func(a, b int) int { return cmp.Compare(count[b], count[a]) })
	in := make([]bool, len(count))
	for i := range deep.Unknown + 1 {
		in[i] = true
	}
	n := deep.Unknown + 1
	for _, i := range used[:min(len(used), most*17/20)] {
		in[i] = true
		n++
	}
	for i := 0; n < most && i < len(in); i++ {
		if !in[i] {
			in[i] = true
			n++
		}
	}
	out := &pieceList{}
	for i, ok := range in {
		if ok {
			out.add(l.rank[i], l.pieces[i], l.scores[i])
		}
	}
	return out
}

func (l *pieceList) write(path string) error {
	var b strings.Builder
	for i, p := range l.pieces {
		quoted, err := json.Marshal(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%d\t%s\t%s\n", l.rank[i], strconv.FormatFloat(float64(l.scores[i]), 'g', -1, 32), quoted)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func writeRows(path string, rows []deepRow) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	e := json.NewEncoder(z)
	for i := range rows {
		if err = e.Encode(&rows[i]); err != nil {
			break
		}
	}
	return errors.Join(err, z.Close(), f.Close())
}
