// SPDX-License-Identifier: Apache-2.0

package training

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// A detector is somebody else's, measured on the same texts as it comes.
type detector struct {
	name  string
	flags map[string]bool // by text
}

// beside asks a program, one JSON string per line, and reads what each of its detectors
// says: an object of name and verdict per line. "" is no program.
func beside(command string, all []*text, progress io.Writer) ([]detector, error) {
	if command == "" {
		return nil, nil
	}
	var in bytes.Buffer
	lines := json.NewEncoder(&in)
	for _, t := range all {
		if err := lines.Encode(t.clean); err != nil {
			return nil, fmt.Errorf("beside: %w", err)
		}
	}
	args := strings.Fields(command)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stderr = &in, progress
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("beside: %w", err)
	}
	by := map[string]map[string]bool{}
	n := 0
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); n++ {
		var says map[string]bool
		if err := json.Unmarshal(s.Bytes(), &says); err != nil || n == len(all) {
			return nil, fmt.Errorf("beside: answer %d is not one of %d", n+1, len(all))
		}
		for name, flagged := range says {
			if by[name] == nil {
				by[name] = map[string]bool{}
			}
			by[name][all[n].clean] = flagged
		}
	}
	if n != len(all) {
		return nil, fmt.Errorf("beside: %d answers to %d texts", n, len(all))
	}
	var list []detector
	for name, flags := range by {
		list = append(list, detector{name, flags})
	}
	slices.SortFunc(list, func(a, b detector) int { return strings.Compare(a.name, b.name) })
	return list, nil
}
