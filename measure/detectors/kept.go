// SPDX-License-Identifier: Apache-2.0

package detectors

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// kept are the answers of one version of a detector, in a file to which new ones are added:
// a detector is asked about a text once, however often the table is made.
type kept struct {
	file    *os.File
	answers map[string]keptAnswer // by digest of the text
}

// A keptAnswer is a line of the file.
type keptAnswer struct {
	Text    string   `json:"text"` // its digest
	Flagged bool     `json:"flagged"`
	Score   *float64 `json:"score"`
	MS      float64  `json:"ms"`
}

func digestOf(text string) string {
	d := sha256.Sum256([]byte(text))
	return hex.EncodeToString(d[:16])
}

// keep opens the answers of a detector in the folder. A line that cannot be read, such as the
// last one of a run that was killed, is left out and its text asked about again.
func keep(folder, name, version string) (*kept, error) {
	k := &kept{answers: map[string]keptAnswer{}}
	if folder == "" {
		return k, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("detectors: keep answers: %w", err)
	}
	path := filepath.Join(folder, url.PathEscape(name+"@"+version)+".jsonl")
	old, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("detectors: keep answers: %w", err)
	}
	if err == nil {
		for s := bufio.NewScanner(old); s.Scan(); {
			var a keptAnswer
			if json.Unmarshal(s.Bytes(), &a) == nil && a.Text != "" {
				k.answers[a.Text] = a
			}
		}
		old.Close()
	}
	if k.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, fmt.Errorf("detectors: keep answers: %w", err)
	}
	_, err = k.file.WriteString("\n") // ends a line that was cut off
	return k, err
}

// add keeps an answer.
func (k *kept) add(a keptAnswer) error {
	k.answers[a.Text] = a
	if k.file == nil {
		return nil
	}
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(line, '\n'))
	return err
}

func (k *kept) close() {
	if k.file != nil {
		k.file.Close()
	}
}
