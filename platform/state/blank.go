// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// blank stands in a journal for a record that was erased, followed by spaces up to the
// record's length.
const blank = `{"erased":true}`

// BlankRecords overwrites the records of a journal for which match says so, in the present
// file and in those that were put aside, and returns how many they were. Each is overwritten
// in its place, with the same length, so that processes may append meanwhile and nothing of
// theirs is lost. A journal that does not exist has no records.
func (d *Dir) BlankRecords(name string, match func(record []byte) bool) (blanked int, err error) {
	path, err := d.file(name)
	if err != nil {
		return 0, err
	}
	held, err := lock(path+".lock", true) // no file is put aside meanwhile
	if err != nil {
		return 0, fmt.Errorf("state: journal: %w", err)
	}
	defer held.Close()
	for f, err := range files(path, os.O_RDWR) {
		if err != nil {
			return blanked, fmt.Errorf("state: journal: %w", err)
		}
		n, err := blankIn(f, match)
		blanked += n
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return blanked, fmt.Errorf("state: journal: %w", err)
		}
	}
	return blanked, nil
}

func blankIn(f *os.File, match func([]byte) bool) (blanked int, err error) {
	r := bufio.NewReaderSize(f, MaxRecord+2)
	for at := int64(0); ; {
		line, err := r.ReadSlice('\n')
		record := bytes.TrimSuffix(line, []byte{'\n'})
		if err == nil && len(record) >= len(blank) && match(record) {
			over := append([]byte(blank), bytes.Repeat([]byte{' '}, len(record)-len(blank))...)
			if _, err := f.WriteAt(over, at); err != nil {
				return blanked, err
			}
			blanked++
		}
		at += int64(len(line))
		switch {
		case errors.Is(err, io.EOF):
			return blanked, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return blanked, err
		}
	}
}
