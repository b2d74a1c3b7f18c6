// SPDX-License-Identifier: Apache-2.0

// Package deploy checks the files with which Pellucid is deployed: the Helm chart, the Compose file, and the alerts and dashboard.
//
// `make -f packaging/Makefile deploy-tools` builds helm, kubeconform and the validator of Compose files, and fetches the
// schemas of Kubernetes. Tests that need them skip where they are absent.
package deploy
