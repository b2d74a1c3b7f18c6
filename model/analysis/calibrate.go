// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"errors"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// CalibrationVersion is that of docs/spec/counterfactual.md, "Calibration files".
const CalibrationVersion = "ccr-calibration/1"

// A CalibrationFile is what `pellucid-lab calibrate` writes.
type CalibrationFile struct {
	Version string `json:"version"`
	Name    string `json:"name,omitempty"` // of the model, as the provider says it, escaped
	counterfactual.Calibration
}

// ParseCalibration reads what `pellucid-lab calibrate` has written.
func ParseCalibration(b []byte) (*counterfactual.Calibration, error) {
	var f CalibrationFile
	if err := strictjson.Unmarshal(b, &f, strictjson.Limits{}); err != nil {
		return nil, err
	}
	if f.Version != CalibrationVersion {
		return nil, errors.New("want version " + CalibrationVersion)
	}
	return &f.Calibration, nil
}
