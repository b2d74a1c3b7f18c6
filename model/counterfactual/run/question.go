// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Question is the body that asks a model to answer a rendered variant: one answer,
// no stream, of at most answer tokens (0 = what src says, else 4096), nothing that
// the provider keeps, and no tool that the provider would run by itself, since to
// ask must do nothing. It returns the bound of the answer as well.
func Question(f format.Name, src []byte, answer int64) (body []byte, output int64, err error) {
	var doc strictjson.Doc
	if err := doc.Reset(src, strictjson.Limits{}); err != nil || doc.Root().Kind() != '{' {
		return nil, 0, errors.New("run: question: no strict JSON object")
	}
	form := format.Of(f)
	if form == nil {
		return nil, 0, errors.New("run: question: no such format")
	}
	var e strictjson.Edits
	output, err = form.Question(&e, doc.Root(), answer)
	if err != nil {
		return nil, 0, fmt.Errorf("run: question: %w", err)
	}
	return e.Apply(make([]byte, 0, len(src)+64), doc.Root()), output, nil
}
