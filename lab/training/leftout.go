// SPDX-License-Identifier: Apache-2.0

package training

import "io"

// A Judged is a text of the collections with the score of a model that has seen nothing of
// its group.
type Judged struct {
	ID, Family string
	Attack     bool
	Free       bool   // its licence lets a model be trained on it
	Text       string // as the boundary shows it to a classifier
	Score      float64
}

// LeftOut judges every text whose meaning a model can judge, in the folder of the test data; root is
// that of the repository.
func LeftOut(root, dir string, progress io.Writer) ([]Judged, error) {
	all, kind, err := loadAll(root, dir)
	if err != nil {
		return nil, err
	}
	js := leaveOut(all, kind, progress)
	calibrate(js)
	var out []Judged
	for _, j := range js {
		out = append(out, Judged{j.id, j.family, j.attack, j.free, j.clean, float64(j.p)})
	}
	return out, nil
}
