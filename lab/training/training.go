// SPDX-License-Identifier: Apache-2.0

// Package training fits the weights of the local classifier on the collections of text, and
// measures them on families that they have not seen.
package training

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/lab/injections"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// Options say what Run does beside the table.
type Options struct {
	Root  string // of the repository, beside which the data are, and in which Write writes
	Write bool   // write weights.bin
}

// Run fits weights, measures them, and writes the table to out. It tells progress how far
// it has come.
func Run(o Options, out, progress io.Writer) error {
	dir, err := datatest.CorporaDir(o.Root)
	if err != nil {
		return err
	}
	all, kind, err := loadAll(o.Root, dir)
	if err != nil {
		return err
	}
	js := leaveOut(all, kind, progress)
	c := calibrate(js)
	var tab bytes.Buffer
	table(&tab, js, &extra{
		held:    heldBack(all, kind, &c),
		tongues: leftOutLanguages(all, kind, &c, progress),
		rows:    leftOutRows(all, kind, &c, progress),
		authors: judgedWithout(all, kind, &c, func(t *text) bool { return t.test }),
	}, &c)
	if _, err := out.Write(tab.Bytes()); err != nil || !o.Write {
		return err
	}
	m, err := model(all, kind, c)
	if err != nil {
		return err
	}
	folder := filepath.Join(o.Root, "boundary", "classify", "local")
	return os.WriteFile(filepath.Join(folder, "weights.bin"), m.Bytes(), 0o644)
}

// loadAll reads the collections in dir, and our own texts with those of the packages.
func loadAll(root, dir string) (all []*text, kind []bool, err error) {
	all, kind, err = load(dir)
	if err != nil {
		return nil, nil, err
	}
	more, err := own(filepath.Join(root, injections.Folder), kind)
	if err != nil {
		return nil, nil, err
	}
	return append(all, more...), kind, nil
}

// model is that of all texts that may be trained on.
func model(all []*text, kind []bool, c local.Calibration) (*local.Model, error) {
	var in []*text
	for _, t := range all {
		if t.free {
			in = append(in, t)
		}
	}
	m := train(in, kind)
	return local.New(m.weights(), m.b, c, digestOf(in))
}

// digestOf names the texts that a model was trained on.
func digestOf(in []*text) string {
	h := sha256.New()
	for _, t := range in {
		fmt.Fprintf(h, "%d:%s%t%d:%s", len(t.family), t.family, t.attack, len(t.clean), t.clean)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
