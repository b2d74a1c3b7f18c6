// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// schemas writes a JSON Schema for each kind that Kubernetes has, from its OpenAPI description, and
// for the kinds of the Prometheus operator, from their definitions. They refuse unknown members.
func schemas(t *testing.T) (dir string) {
	t.Helper()
	swagger := deployTool(t, "swagger.json")
	dir = t.TempDir()
	var api struct{ Definitions map[string]map[string]any }
	if err := json.Unmarshal(read(t, swagger), &api); err != nil {
		t.Fatal(err)
	}
	written := 0
	for name, definition := range api.Definitions {
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue // a part of others, or a list of any kind
		}
		kind, _ := kinds[0].(map[string]any)
		used := map[string]any{}
		collect(api.Definitions, name, used)
		write(t, dir, kind["kind"].(string), kind["group"].(string), kind["version"].(string),
			map[string]any{"$ref": "#/definitions/" + name, "definitions": used})
		written++
	}
	if written < 50 {
		t.Fatalf("%d kinds in the description of Kubernetes", written)
	}
	for _, file := range []string{"servicemonitors", "prometheusrules"} {
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPI map[string]any `yaml:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(read(t, deployTool(t, "monitoring.coreos.com_"+file+".yaml")), &crd); err != nil {
			t.Fatal(err)
		}
		for _, v := range crd.Spec.Versions {
			schema := closed(v.Schema.OpenAPI).(map[string]any)
			schema["properties"].(map[string]any)["metadata"] = map[string]any{"type": "object"}
			write(t, dir, crd.Spec.Names.Kind, crd.Spec.Group, v.Name, schema)
		}
	}
	return dir
}

// write gives the file the name by which kubeconform looks for it.
func write(t *testing.T, dir, kind, group, version string, schema any) {
	t.Helper()
	name := strings.ToLower(kind)
	if group != "" {
		name += "-" + strings.Split(group, ".")[0]
	}
	b, err := json.Marshal(schema)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+"-"+strings.ToLower(version)+".json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// collect copies a definition, and all that it refers to, into used.
func collect(all map[string]map[string]any, name string, used map[string]any) {
	if _, done := used[name]; done {
		return
	}
	switch {
	case strings.HasSuffix(name, ".IntOrString"), strings.HasSuffix(name, ".Quantity"):
		used[name] = map[string]any{"type": []string{"string", "number"}}
		return
	case strings.HasSuffix(name, ".JSONSchemaProps"), strings.HasSuffix(name, ".ManagedFieldsEntry"):
		used[name] = map[string]any{} // of no concern here, and the first refers to itself
		return
	}
	used[name] = closed(any(all[name]))
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				collect(all, strings.TrimPrefix(ref, "#/definitions/"), used)
			}
			for _, m := range v {
				walk(m)
			}
		case []any:
			for _, m := range v {
				walk(m)
			}
		}
	}
	walk(used[name])
}

// closed is a copy of a schema in which no object may have members that it does not name.
func closed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, m := range v {
			out[name] = closed(m)
		}
		if _, named := v["properties"].(map[string]any); named && out["type"] == "object" {
			if _, open := v["additionalProperties"]; !open && v["x-kubernetes-preserve-unknown-fields"] != true {
				out["additionalProperties"] = false
			}
		}
		if v["x-kubernetes-int-or-string"] == true {
			return map[string]any{"type": []string{"string", "integer"}}
		}
		delete(out, "format") // int32, date-time and the like: kubeconform does not know them all
		if _, isName := v["format"].(map[string]any); isName {
			out["format"] = closed(v["format"])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, m := range v {
			out[i] = closed(m)
		}
		return out
	}
	return v
}
