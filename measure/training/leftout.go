// SPDX-License-Identifier: Apache-2.0

package training

import "io"

// A Judged is a text of the collections with the score of a model that has seen nothing of
// its group.
type Judged struct {
	ID, Family string
	Attack     bool
	Text       string // as the boundary shows it to a classifier
	Score      float64
}

// LeftOut judges every text whose meaning a model can judge, in the folder of the test data.
func LeftOut(dir string, progress io.Writer) ([]Judged, error) {
	all, kind, err := load(dir)
	if err != nil {
		return nil, err
	}
	var out []Judged
	for _, j := range leaveOut(all, kind, progress) {
		out = append(out, Judged{j.id, j.family, j.attack, j.clean, float64(j.p)})
	}
	return out, nil
}
