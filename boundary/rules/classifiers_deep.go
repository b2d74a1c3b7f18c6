// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/deep"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// A deepModel is the file that the provider local may have beside the model of the program.
type deepModel struct {
	file    string // absolute; "": the default place
	digest  string // with its algorithm; "": that of a published file
	windows int
}

func (m *deepModel) members() []member {
	return []member{
		{"file", live, parsed(&m.file, "PATH or `file:PATH`", (*compiler).file), "the file of the deep model; default: `models/detector.safetensors` beside the program, without which the fast model judges alone"},
		{"digest", live, checked(&m.digest, "", "sha256: and 64 lower-case hex digits", isDigest), "the digest that the file has to have; default: that of a file that was published with this version"},
		{"windows", live, integer(&m.windows, deep.DefaultWindows, 1, 1024), "passages of one result that it looks at, the most suspicious first"},
	}
}

// path is where the file should lie.
func (m *deepModel) path() string {
	if m.file != "" {
		return m.file
	}
	self, _ := os.Executable()
	return filepath.Join(filepath.Dir(self), "models", "detector.safetensors")
}

// Deep is the deep model of a classifier that has the provider local. file is where it lies,
// "" where none is configured; model is nil where the default place has none.
func (x *Classifier) Deep() (file string, model *deep.File, err error) {
	if x.Provider != Local || x.deep == nil {
		return "", nil, nil
	}
	file = x.deep.path()
	model, err = deep.Find(file, strings.TrimPrefix(x.deep.digest, "sha256:"))
	if x.deep.file == "" && errors.Is(err, fs.ErrNotExist) {
		return file, nil, nil
	}
	return file, model, err
}

// Quotes reports whether a classifier can say which sentence of a text it has flagged.
func (r *Rules) Quotes() bool {
	for _, x := range r.Classifiers {
		if x.deep != nil {
			return true
		}
	}
	return false
}

// here is the classifier that computes in this process.
func (x *Classifier) here() (classify.Classifier, error) {
	_, model, err := x.Deep()
	if err != nil || model == nil {
		return local.Classifier{Model: local.Default()}, err
	}
	return deep.Cascade{Fast: local.Default(), Deep: model, Windows: x.deep.windows}, nil
}

// strictest is the most false alarms, of 10,000, at which the deep model may hold a result.
const strictest = 25

// strict reports a limit of the deep model that is not known, or too loose to act on.
func (c *compiler) strict(p place, x *Classifier) {
	if x.deep == nil {
		return
	}
	limit, ok := deep.LimitFor(x.alarms)
	if x.alarms > 0 && !ok {
		c.report(p.at("false_alarms"), "of the deep model it is known from 10 to 500")
		return
	}
	least, _ := deep.LimitFor(strictest)
	if x.alarms == 0 {
		limit = float32(x.limit)
	}
	if x.Mode == policy.Enforce && limit < least {
		c.report(p.at("mode"), "enforce with the deep model needs false_alarms of at most %d, or a limit of at least %.4f: a looser one would hold more honest results than attacks", strictest, least)
	}
}
