// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/deep"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

// A deepModel is the file that the provider local may have beside the model of the program.
type deepModel struct {
	file   string // absolute; "": none
	digest string // with its algorithm; "": that of a published file
}

func (m *deepModel) members() []member {
	return []member{
		{"file", needed, parsed(&m.file, "PATH or `file:PATH`", (*compiler).file), "the file of the deep model; without it the fast model judges alone"},
		{"digest", live, checked(&m.digest, "", "sha256: and 64 lower-case hex digits", isDigest), "the digest that the file has to have; default: that of a file that was published with this version"},
	}
}

// Deep is the deep model of a classifier that has the provider local. file is where it lies,
// "" where none is configured; model is nil where the file is absent.
func (x *Classifier) Deep() (file string, model *deep.Model, err error) {
	if x.Provider != Local || x.deep.file == "" {
		return "", nil, nil
	}
	model, err = deep.Open(x.deep.file, strings.TrimPrefix(x.deep.digest, "sha256:"))
	if errors.Is(err, fs.ErrNotExist) {
		return x.deep.file, nil, nil
	}
	return x.deep.file, model, err
}

// here is the classifier that computes in this process.
func (x *Classifier) here() (classify.Classifier, error) {
	_, model, err := x.Deep()
	if err != nil || model == nil {
		return local.Classifier{Model: local.Default()}, err
	}
	return deep.Cascade{Fast: local.Default(), Deep: model}, nil
}
