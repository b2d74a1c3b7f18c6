// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Unmarshal decodes src into the variable that v points to, by the struct tags
// of encoding/json. It refuses what Reset refuses, a member that the type does
// not have (so also one that only differs in case), two names in one object
// that only differ in case, and a value that the type cannot hold. The variable
// is replaced as a whole, or left untouched where there is an error.
//
// The error is a *SyntaxError and holds nothing of the text. A v that is not a
// non-nil pointer is a mistake in the program and panics.
func Unmarshal(src []byte, v any, lim Limits) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic("strictjson: Unmarshal into something that is not a non-nil pointer")
	}
	lim.FoldedNames = true
	var d Doc
	if err := d.Reset(src, lim); err != nil {
		return err
	}
	fresh := reflect.New(target.Type().Elem())
	if err := json.Unmarshal(d.src, fresh.Interface(), json.RejectUnknownMembers(true)); err != nil {
		return typeError(err)
	}
	target.Elem().Set(fresh.Elem())
	return nil
}

// typeError keeps of err what is constant: it quotes names and values.
func typeError(err error) error {
	e := &SyntaxError{Code: CodeType}
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		e.Offset = int(semantic.ByteOffset)
	case errors.As(err, &syntactic):
		e.Offset = int(syntactic.ByteOffset)
	}
	if errors.Is(err, json.ErrUnknownName) {
		e.Code = CodeUnknownMember
	}
	return e
}
