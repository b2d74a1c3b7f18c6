// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// findings, scores and session are an evaluation as a value of CEL: it can be asked through
// its functions and is otherwise opaque.
type (
	findings evaluation
	scores   evaluation
	session  evaluation
)

var errOpaque = errors.New("policy: this value has no other form")

// asked is the evaluation behind a value.
func asked(v ref.Val) *evaluation {
	switch v := v.(type) {
	case *findings:
		return (*evaluation)(v)
	case *scores:
		return (*evaluation)(v)
	case *session:
		return (*evaluation)(v)
	}
	return nothing
}

// nothing is the evaluation of an empty input.
var nothing = &evaluation{in: new(policy.Input)}

func (*findings) ConvertToNative(reflect.Type) (any, error) { return nil, errOpaque }
func (*findings) ConvertToType(ref.Type) ref.Val            { return types.WrapErr(errOpaque) }
func (*findings) Equal(ref.Val) ref.Val                     { return types.False }
func (*findings) Type() ref.Type                            { return findingsType }
func (f *findings) Value() any                              { return f }

func (*scores) ConvertToNative(reflect.Type) (any, error) { return nil, errOpaque }
func (*scores) ConvertToType(ref.Type) ref.Val            { return types.WrapErr(errOpaque) }
func (*scores) Equal(ref.Val) ref.Val                     { return types.False }
func (*scores) Type() ref.Type                            { return scoresType }
func (s *scores) Value() any                              { return s }

func (*session) ConvertToNative(reflect.Type) (any, error) { return nil, errOpaque }
func (*session) ConvertToType(ref.Type) ref.Val            { return types.WrapErr(errOpaque) }
func (*session) Equal(ref.Val) ref.Val                     { return types.False }
func (*session) Type() ref.Type                            { return sessionType }
func (s *session) Value() any                              { return s }
