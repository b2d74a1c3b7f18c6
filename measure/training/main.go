// SPDX-License-Identifier: Apache-2.0

// Command training fits the weights of package local on the collections of text, and
// measures them on families that they have not seen.
//
//	go run ./measure/training          prints the table
//	go run ./measure/training -write   also writes the weights and the table in MODEL.md
//
// With -beside PROGRAM the table has columns for detectors of others; see beside.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/measure/corpora"
)

func main() {
	root := flag.String("root", ".", "root of the repository")
	write := flag.Bool("write", false, "write weights.bin and the table in MODEL.md")
	others := flag.String("beside", "", "program that asks other detectors, with its arguments")
	flag.Parse()
	if err := run(*root, *write, *others, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(root string, write bool, others string, out, progress io.Writer) error {
	dir, err := corpora.Dir(root)
	if err != nil {
		return err
	}
	all, kind, err := load(dir)
	if err != nil {
		return err
	}
	peers, err := beside(others, all, progress)
	if err != nil {
		return err
	}
	js := leaveOut(all, kind, progress)
	limit := limitOf(js)
	var tab bytes.Buffer
	table(&tab, js, limit, peers)
	if _, err := out.Write(tab.Bytes()); err != nil || !write {
		return err
	}
	m, err := model(all, kind, limit)
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "classify", "local")
	if err := os.WriteFile(filepath.Join(folder, "weights.bin"), m.Bytes(), 0o644); err != nil {
		return err
	}
	return card(filepath.Join(folder, "MODEL.md"), tab.Bytes())
}

// model is that of all texts that may be trained on.
func model(all []*text, kind []bool, limit float32) (*local.Model, error) {
	var in []*text
	for _, t := range all {
		if t.free {
			in = append(in, t)
		}
	}
	m := train(in, kind)
	return local.New(m.w, m.b, limit, digestOf(in))
}

// digestOf names the texts that a model was trained on.
func digestOf(in []*text) string {
	h := sha256.New()
	for _, t := range in {
		fmt.Fprintf(h, "%d:%s%t%d:%s", len(t.family), t.family, t.attack, len(t.clean), t.clean)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// The table in MODEL.md stands between these lines.
const begin, end = "<!-- table -->\n", "<!-- end of table -->"

func card(path string, tab []byte) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, found := bytes.Cut(old, []byte(begin))
	_, tail, found2 := bytes.Cut(rest, []byte(end))
	if !found || !found2 {
		return errors.New("MODEL.md has no place for a table")
	}
	return os.WriteFile(path, bytes.Join([][]byte{head, []byte(begin), tab, []byte(end), tail}, nil), 0o644)
}
