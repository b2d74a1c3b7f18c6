// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
)

// Licence is that of the texts, for any use.
const Licence = "CC0-1.0"

// Write writes rows as JSON Lines, one object a row, compressed by gzip where the name
// ends in .gz. The same rows give the same bytes.
func Write(w io.Writer, name string, rows []Row) error {
	if !strings.HasSuffix(name, ".gz") {
		return write(w, rows)
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := write(z, rows); err != nil {
		return err
	}
	return z.Close()
}

func write(w io.Writer, rows []Row) error {
	for _, r := range rows {
		kind, split := "benign", "train"
		if r.Attack {
			kind = "attack"
		}
		switch {
		case r.Held:
			split = "held"
		case r.Test:
			split = "test"
		}
		_, err := fmt.Fprintf(w, `{"id":"%s","licence":"%s","kind":"%s","family":"%s","language":"%s","group":"%s","carrier":"%s","split":"%s","author":"%s","text":"%s"}`+"\n",
			r.ID, r.Licence, kind, r.Family, r.Language, r.Group, r.Carrier, split, r.Author, escaped(r.Text, true))
		if err != nil {
			return err
		}
	}
	return nil
}
