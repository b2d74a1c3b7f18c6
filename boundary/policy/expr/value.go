// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// An opaque is a value of CEL that only the functions of its type can read: the findings, the scores or the session of
// an evaluation, or a policy.Object, which no function takes.
type opaque struct {
	celType *types.Type
	e       *evaluation
}

var errOpaque = errors.New("policy: this value has no other form")

// asked is the evaluation behind a value.
func asked(v ref.Val) *evaluation {
	if o, is := v.(*opaque); is && o.e != nil {
		return o.e
	}
	return nothing
}

// nothing is the evaluation of an empty input.
var nothing = &evaluation{in: new(policy.Input)}

func (*opaque) ConvertToNative(reflect.Type) (any, error) { return nil, errOpaque }
func (*opaque) ConvertToType(ref.Type) ref.Val            { return types.WrapErr(errOpaque) }
func (*opaque) Equal(ref.Val) ref.Val                     { return types.False }
func (o *opaque) Type() ref.Type                          { return o.celType }
func (o *opaque) Value() any                              { return o }
